// The first page: who you are, then health, search, and a document on its way.

import { ask, becomeDemoPerson, isSignedIn, useToken } from './api.js'
import { find, make, say } from './elements.js'
import { follow, startFollowing } from './follow.js'
import { showReady, stopWatching, watchHealth } from './health.js'
import { startOver, startSearch } from './search.js'

const keptPerson = 'hermod-person'

async function start() {
  const about = await ask('about')
  say(find('version'), about.version)
  if (about.development) await startDevelopment(about)
  else if (isSignedIn()) await enter()
  else await showSignIn()
}

async function startDevelopment({ people }) {
  find('catcher-link').hidden = false
  find('development-note').hidden = false
  const select = find('person')
  select.replaceChildren(
    ...people.map(({ name, displayName, role }) => make('option', { value: name }, `${displayName} (${role})`)),
  )
  const kept = sessionStorage.getItem(keptPerson)
  if (people.some(({ name }) => name === kept)) select.value = kept
  select.onchange = async () => {
    sessionStorage.setItem(keptPerson, select.value)
    await becomeDemoPerson(select.value)
    allowWriting(people)
    await startOver()
  }
  find('who').hidden = false
  await becomeDemoPerson(select.value)
  allowWriting(people)
  await enter()
}

/** Readers have no button: what a person may not do is absent, not dead. */
function allowWriting(people) {
  const { role } = people.find(({ name }) => name === find('person').value)
  find('write').hidden = role === 'reader'
}

async function enter() {
  find('sign-in').hidden = true
  find('columns').hidden = false
  startFollowing()
  await Promise.all([watchHealth(signOut), startSearch({ follow })])
}

async function signOut() {
  useToken(null)
  stopWatching()
  find('columns').hidden = true
  find('sign-out').hidden = true
  await showSignIn()
}

async function showSignIn() {
  find('sign-in').hidden = false
  find('token-form').onsubmit = async (event) => {
    event.preventDefault()
    useToken(find('token').value.trim())
    say(find('token-problem'), '')
    try {
      await ask('health')
      find('token').value = ''
      find('sign-out').hidden = false
      find('sign-out').onclick = signOut
      await enter()
    } catch (error) {
      useToken(null)
      say(find('token-problem'), error.message)
      find('token').focus()
    }
  }
  await showReady()
}

start().catch((error) => {
  find('health').dataset.state = 'away'
  say(find('health-word').lastElementChild, 'Away')
  say(find('health-says'), 'The server does not answer. Reload the page to try again.')
  throw error
})
