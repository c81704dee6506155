// One document from its commit to the first search that can find it, step by step, with times.

import { Refusal, syncOf, writeDocument } from './api.js'
import { duration, find, make, say } from './elements.js'
import { showNew } from './search.js'

const everyMs = 15
const patienceMs = 20_000
const runsMax = 5
const runs = []
let following

export function startFollowing() {
  find('write').onclick = write
}

async function write() {
  const button = find('write')
  if (button.getAttribute('aria-disabled') === 'true') return
  button.setAttribute('aria-disabled', 'true')
  begin('Writing …')
  try {
    const { document: written, answeredMs, tookMs } = await writeDocument(somethingToSay())
    say(find('followed'), written.title)
    step('committed', `took ${duration(tookMs)}`)
    const ms = await until(written.id, answeredMs)
    remember(written.title, ms)
    await showNew(written.id)
  } catch (error) {
    fail(error)
  }
  button.removeAttribute('aria-disabled')
}

/** Where the last change of a document that was found is. */
export async function follow({ id, title }) {
  begin(title)
  step('committed')
  find('follow-title').scrollIntoView({ block: 'nearest' })
  try {
    await until(id, performance.now())
    const item = find('track').lastElementChild
    say(item.querySelector('.time'), '')
    say(find('outcome'), 'Search has its newest version.')
  } catch (error) {
    fail(error)
  }
}

/** Asks until it is searchable; the answer names every step that was taken. */
async function until(id, startedMs) {
  following?.abort()
  following = new AbortController()
  const { signal } = following
  for (;;) {
    const sync = await syncOf(id, signal)
    const ms = performance.now() - startedMs
    show(sync, ms)
    if (sync.searchable) {
      await deliveryOf(id, sync, signal)
      return ms
    }
    if (sync.why !== null && ms > 1_000) say(find('outcome'), sync.why)
    if (ms > patienceMs) throw new Error(sync.why ?? 'it is still on its way.')
    await new Promise((resolve) => setTimeout(resolve, everyMs))
  }
}

/** What the worker did is written down a moment after it did it. */
async function deliveryOf(id, sync, signal) {
  let last = sync
  for (let tries = 0; tries < 10 && !deliveredBy(last); tries++) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    last = await syncOf(id, signal)
  }
  showDelivery(last)
}

const deliveredBy = ({ attempts }) => attempts.find(({ outcome }) => outcome === 'delivered')

function showDelivery(sync) {
  const call = deliveredBy(sync)
  if (!call) return
  const from = sync.event?.createdAt
  step('delivered', after(from, call.startedAt, call.durationMs), `By the worker ${call.worker}`)
}

function show(sync, ms) {
  const { searchable, event } = sync
  if (event?.position) {
    const took = after(event.createdAt, event.sequencedAt)
    step('numbered', took, `Position ${event.position} in the log`)
  }
  showDelivery(sync)
  if (!searchable) return
  step('delivered')
  step('searchable', `+${duration(ms)}`)
  say(find('outcome'), `Searchable ${duration(ms)} after the commit was answered.`)
}

/** By the server's clock, from the event to what happened to it. */
function after(from, to, moreMs = 0) {
  if (!from || !to) return ''
  return `+${duration(new Date(to).getTime() + moreMs - new Date(from).getTime())}`
}

function begin(title) {
  find('followed').hidden = false
  say(find('followed'), title)
  say(find('outcome'), '')
  delete find('outcome').dataset.state
  for (const item of find('track').children) {
    delete item.dataset.done
    delete item.dataset.now
    say(item.querySelector('.time'), '')
  }
  find('track').firstElementChild.dataset.now = ''
}

function step(name, time, says) {
  const item = find('track').querySelector(`[data-step="${name}"]`)
  if (time) say(item.querySelector('.time'), time)
  if (says) say(item.querySelector('.says'), says)
  item.dataset.done = ''
  delete item.dataset.now
  const next = item.nextElementSibling
  if (next && next.dataset.done === undefined) next.dataset.now = ''
}

function fail(error) {
  if (error.name === 'AbortError') return
  const why = error instanceof Refusal || error.message ? error.message : String(error)
  find('outcome').dataset.state = 'bad'
  say(find('outcome'), `Not searchable: ${why}`)
  for (const item of find('track').children) delete item.dataset.now
}

function remember(title, ms) {
  runs.unshift({ title, ms })
  runs.length = Math.min(runs.length, runsMax)
  const most = Math.max(250, ...runs.map((run) => run.ms))
  find('runs').replaceChildren(
    ...runs.map((run) =>
      make(
        'li',
        {},
        make('span', { class: 'title' }, run.title),
        make('span', { class: 'took' }, duration(run.ms)),
        make('meter', {
          min: 0,
          max: most,
          value: run.ms,
          'aria-label': `${run.title}: milliseconds`,
        }),
      ),
    ),
  )
  find('runs-part').hidden = false
}

const subjects = ['harbours', 'night trains', 'lighthouses', 'winter roads', 'river ferries']
subjects.push('mountain passes', 'post offices', 'long letters', 'tide tables', 'paper maps')
const angles = ['A short history of', 'What we learned from', 'Notes on', 'In praise of', 'Rules for']

function somethingToSay() {
  const pick = (list) => list[Math.floor(Math.random() * list.length)]
  const subject = pick(subjects)
  return {
    title: `${pick(angles)} ${subject}`,
    docType: 'Memo',
    product: 'Platform',
    tags: ['page'],
    summary: `Written by the first page at ${new Date().toLocaleTimeString()}.`,
    content: `Everything about ${subject} that fits into one transaction.`,
  }
}
