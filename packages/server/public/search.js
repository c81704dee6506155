// Search as you type: the last question wins, earlier ones are given up. Facets narrow, and keep
// counting as if their own choice had not been made.

import { Refusal, search } from './api.js'
import { ago, find, make, marked, say } from './elements.js'

const facetNames = { product: 'Product', docType: 'Type', status: 'Status' }
const pauseMs = 60
const pageSize = 8
const chosen = new Map()
let asking
let timer
let onFollow
/** Written by the button beside the results: shown as new. */
let fresh
let limit = pageSize
/** The end of the log when these results were asked for. */
let head
let seenHead

export function startSearch({ follow }) {
  onFollow = follow
  find('search-form').onsubmit = (event) => {
    event.preventDefault()
    refresh()
  }
  find('query').oninput = () => {
    clearTimeout(timer)
    timer = setTimeout(refresh, pauseMs)
  }
  for (const choice of document.getElementsByName('index')) choice.onchange = startOver
  find('newer').onclick = refresh
  find('more').onclick = () => {
    limit += pageSize
    refresh()
  }
  document.onkeydown = onKey
  return refresh()
}

/** Another person, another index: what was chosen means nothing there. */
export function startOver() {
  chosen.clear()
  limit = pageSize
  return refresh()
}

/** Rows never move by themselves; whoever wants to see what changed asks for it. */
export function hearOf(newHead) {
  head = newHead
  if (seenHead === undefined) seenHead = head
  else if (seenHead !== head && find('hits').children.length === 0) refresh()
  else find('newer').hidden = seenHead === head
}

export function showNew(id) {
  fresh = id
  return refresh()
}

/** `/` comes here unless somebody is typing; Escape starts over. */
function onKey(event) {
  const input = find('query')
  const typing = event.target.closest?.('input, select, textarea')
  if (event.key === '/' && !typing && !event.ctrlKey && !event.metaKey && !event.altKey) {
    event.preventDefault()
    input.focus()
  }
  if (event.key === 'Escape' && event.target === input) {
    input.value = ''
    startOver()
  }
}

async function refresh() {
  asking?.abort()
  asking = new AbortController()
  const { signal } = asking
  const query = find('query').value.trim()
  const index = document.querySelector('[name="index"]:checked').value
  const startedMs = performance.now()
  seenHead = head
  find('newer').hidden = true
  try {
    const result = await search({ query, index, filters: chosen, limit, signal })
    show(result, { query, index, tookMs: performance.now() - startedMs })
  } catch (error) {
    if (signal.aborted) return
    const why = error instanceof Refusal ? error.message : 'The server does not answer.'
    say(find('found'), '')
    find('hits').replaceChildren()
    find('more').hidden = true
    nothing(`Search failed: ${why} Type on to try again.`)
  }
}

function show({ hits, total, totalExact, facets, corrections }, { query, index, tookMs }) {
  const noun = index === 'drafts' ? 'draft' : 'document'
  const count = `${totalExact === false ? 'more than ' : ''}${total} ${noun}${total === 1 ? '' : 's'}`
  const like = Object.keys(corrections ?? {}).length > 0 ? ', similar words included' : ''
  say(find('found'), `${count} in ${Math.max(1, Math.round(tookMs))} ms${like}`)
  find('hits').replaceChildren(...hits.map(hitOf))
  find('more').hidden = hits.length >= total
  showFacets(facets ?? {})
  nothing(hits.length > 0 ? '' : emptyText(query, noun))
}

function nothing(text) {
  const element = find('nothing')
  say(element, text)
  element.hidden = text === ''
}

function emptyText(query, noun) {
  if (query !== '' || chosen.size > 0) return `No ${noun} matches. Try fewer words or another facet.`
  return noun === 'draft'
    ? 'You have no drafts. Drafts are seen only by those who write them.'
    : 'Nothing is here yet. Write a document: it will be found right after its commit.'
}

function hitOf({ id, document: found, highlights = {} }) {
  const { title, summary, docKey, docType, status, ownerNames = [], modifiedAt } = found
  const button = make('button', { type: 'button', class: 'quiet' }, 'Follow')
  button.setAttribute('aria-label', `Follow ${title}`)
  button.onclick = () => onFollow({ id, title })
  const text = highlights.summary ?? highlights.content
  return make(
    'li',
    {},
    make('h3', {}, ...(highlights.title ? marked(highlights.title) : [title])),
    button,
    make('p', { class: 'text' }, ...(text ? marked(text) : [summary ?? ''])),
    make(
      'p',
      { class: 'meta' },
      id === fresh ? make('span', { class: 'new' }, 'new') : undefined,
      docKey ? make('span', { class: 'key' }, docKey) : undefined,
      make('span', {}, docType),
      make('span', {}, status),
      make('span', {}, ownerNames.join(', ')),
      ago(modifiedAt),
    ),
  )
}

function showFacets(facets) {
  const focused = document.activeElement?.dataset?.facet
  const sets = Object.entries(facetNames).map(([field, name]) => facetOf(field, name, facets[field]))
  find('facets').replaceChildren(...sets.filter((set) => set !== undefined))
  // Whoever chose by keyboard stays where they were.
  if (focused) document.querySelector(`[data-facet="${CSS.escape(focused)}"]`)?.focus()
}

function facetOf(field, name, counts = []) {
  if (counts.length === 0) return undefined
  const labels = counts.slice(0, 6).map(({ value, count }) => {
    const checked = chosen.get(field)?.has(value) ?? false
    const input = make('input', { type: 'checkbox', 'data-facet': `${field}:${value}` })
    input.checked = checked
    input.onchange = () => choose(field, value, input.checked)
    return make('label', {}, input, value, make('span', { class: 'count' }, String(count)))
  })
  return make('fieldset', {}, make('legend', {}, name), ...labels)
}

function choose(field, value, wanted) {
  const values = chosen.get(field) ?? new Set()
  if (wanted) values.add(value)
  else values.delete(value)
  if (values.size === 0) chosen.delete(field)
  else chosen.set(field, values)
  refresh()
}
