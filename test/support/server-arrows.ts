// Who may import whom inside packages/server/src, as data. A file may always import its own room, the
// files beside the rooms (actor.ts, platform.ts, …) and the queries.ts of another room. Everything else
// is listed here.

export interface Arrow {
  readonly from: RegExp
  readonly to: RegExp
  readonly why: string
}

const http = 'actor-of|command|page|paging|responses'

/** Paths from packages/server/src/. */
export const serverArrows: readonly Arrow[] = [
  { from: /^(cli|dev)\//, to: /./, why: 'doors: they start commands of every room' },
  { from: /^(index|serve)\.ts$/, to: /^http\/app\.ts$/, why: 'they start the server' },
  { from: /^reactions\.ts$/, to: /^documents\/workspace\/sink\.ts$/, why: 'the table of events and their sinks' },
  { from: /^http\/app\.ts$/, to: /\/(routes|authenticate|development|resolve)\.ts$/, why: 'assembles the rooms' },
  { from: /^http\/guard\.ts$/, to: /^access\/authenticate\.ts$/, why: 'every request says who is asking' },
  { from: /^http\/status\.ts$/, to: /^access\/development\.ts$/, why: 'the page offers demo people' },
  {
    from: /(^|\/)([a-z]+-)?routes\.ts$|\/(schemas|answers)\.ts$|^access\/development\.ts$/,
    to: new RegExp(`^http/(${http})\\.ts$`),
    why: 'routes and their shapes speak HTTP; rules, commands and queries do not',
  },
]

/** Rules decide and do nothing else: what they may not import, at run time. */
export const rulesClosed =
  /^(pg|fastify|hermod|pino|node:(fs|net|http|https|child_process|timers).*)$|\/(platform|queries|commands|write|record)\.ts$/
