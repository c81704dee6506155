// What the catchers of npm start caught: newest first, looked at every two seconds.

import { ago, find, make, say } from './elements.js'

const everyMs = 2_000
const shown = { mails: '', hooks: '' }

async function look() {
  if (!document.hidden) {
    await Promise.all([load('mails', mailOf), load('hooks', hookOf)]).catch(() => {})
  }
  setTimeout(look, everyMs)
}

async function load(name, view) {
  const response = await fetch(`catcher/${name}`, { cache: 'no-store' })
  const { items } = await response.json()
  say(find(`${name}-count`), items.length === 0 ? '' : `${items.length} caught`)
  find(`${name}-none`).hidden = items.length > 0
  // What is open stays open until something new comes.
  const last = String(items[0]?.id ?? '')
  if (shown[name] === last) return
  shown[name] = last
  find(name).replaceChildren(...items.map(view))
}

function mailOf({ id, subject, from, to, receivedAt, bytes }) {
  const source = make('pre', { tabindex: '0' })
  const details = make('details', {}, make('summary', {}, subject || '(no subject)'), source)
  details.ontoggle = async () => {
    if (details.open && source.textContent === '') {
      const response = await fetch(`catcher/mails/${id}`)
      source.textContent = await response.text()
    }
  }
  const meta = make('p', { class: 'meta' }, `${from} to ${to.join(', ')}, ${bytes} bytes, `, ago(receivedAt))
  return make('li', {}, details, meta)
}

function hookOf({ method, path, headers, body, receivedAt, bytes }) {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
  const details = make(
    'details',
    {},
    make('summary', {}, `${method} ${path}`),
    make('pre', { tabindex: '0' }, `${lines.join('\n')}\n\n${body}`),
  )
  return make('li', {}, details, make('p', { class: 'meta' }, `${bytes} bytes, `, ago(receivedAt)))
}

look()
