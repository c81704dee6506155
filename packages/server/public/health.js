// Health in words: one sentence, and a tile for each subscription. Looks every two seconds while
// somebody looks at the page.

import { ask, Refusal } from './api.js'
import { duration, find, make, say } from './elements.js'
import { hearOf } from './search.js'

const everyMs = 2_000
let timer

export function watchHealth(onSignedOut) {
  const look = async () => {
    clearTimeout(timer)
    try {
      show(await ask('health'))
    } catch (error) {
      if (error instanceof Refusal && error.status === 401) return onSignedOut()
      showAway(error)
    }
    if (!document.hidden) timer = setTimeout(look, everyMs)
  }
  document.onvisibilitychange = () => {
    clearTimeout(timer)
    if (!document.hidden) look()
  }
  return look()
}

export function stopWatching() {
  clearTimeout(timer)
  document.onvisibilitychange = null
}

/** Without a person to ask for: ready or not. */
export async function showReady() {
  const { ok } = await fetch('readyz', { cache: 'no-store' }).catch(() => ({ ok: false }))
  setHealth(
    ok ? 'ok' : 'away',
    ok ? 'Ready' : 'Not ready',
    ok ? 'The server is ready. Sign in to look around.' : 'The server or its database is away.',
  )
  find('subscriptions').replaceChildren()
}

function show({ status, says, subscriptions, head }) {
  hearOf(head)
  setHealth(status, status === 'ok' ? 'Healthy' : 'Needs attention', says)
  find('subscriptions').replaceChildren(...subscriptions.map(tile))
}

function showAway(error) {
  const why = error instanceof Refusal ? error.message : 'The server does not answer.'
  setHealth('away', 'Away', `${why} Trying again …`)
}

function setHealth(state, word, says) {
  find('health').dataset.state = state
  say(find('health-word').lastElementChild, word)
  say(find('health-says'), says)
}

function tile({ name, health, why, pending, oldestPendingAgeMs, retrying, dead }) {
  const troubled = health !== 'ok' || retrying > 0 || dead > 0
  const parts = [
    health === 'ok' ? undefined : why,
    // A count that could not be had in time is a dash, never a zero.
    pending === 0 ? 'Nothing waits' : `${pending ?? '–'} waiting`,
    pending > 0 && oldestPendingAgeMs !== null ? `the oldest for ${duration(oldestPendingAgeMs)}` : undefined,
    retrying > 0 ? `${retrying} retrying` : undefined,
    dead > 0 ? `${dead} dead` : undefined,
  ]
  return make(
    'li',
    { 'data-state': troubled ? 'attention' : 'ok' },
    make('strong', {}, name),
    make('span', { class: 'word' }, health),
    make('span', { class: 'says' }, parts.filter(Boolean).join(', ')),
  )
}
