// The other side of the model: a destination that follows a plan (fail twice, then accept), keeps
// what it accepted, and knows what may rightly have become of every change.

import type { OutboxEvent } from '../../src/event.ts'
import { brokenRow } from '../../src/flow/deliver.ts'
import {
  type Capabilities,
  type DeliveryContext,
  delivered,
  type Outcome,
  type Parked,
  rejected,
  retry,
  type Sink,
  split,
  unavailable,
} from '../../src/sinks/sink.ts'

export type Answer = 'retry' | 'rejected' | 'unavailable' | 'crash-before' | 'crash-after'

export type Policy = {
  readonly order: 'aggregate' | 'none'
  readonly coalesce: 'none' | 'latest'
  readonly onDead: 'release' | 'hold'
  readonly attemptsMax: number
  readonly count: number
  readonly lanes: 1 | 'all'
  readonly keepsOrder: boolean
  readonly ledger: boolean
  /** Calls are tasks: one word for all their events, and it comes later. */
  readonly asynchronous: boolean
}

export type Row = { readonly id: string; readonly v: number; readonly state: string }

type Task = { readonly events: readonly OutboxEvent[]; polls: number; outcome?: Outcome }

const nameOf = ({ aggregateId, payload }: OutboxEvent) => `${aggregateId}@${(payload as { v: number }).v}`

export class Destination implements Sink {
  readonly name = 'destination'
  readonly capabilities: Partial<Capabilities>
  readonly policy: Policy
  readonly poll?: NonNullable<Sink['poll']>
  /** Every version accepted of a document, in order. */
  readonly accepted = new Map<string, number[]>()
  readonly spent = new Map<string, number>()
  readonly refused = new Set<string>()
  /** Failed in a call in which another was unavailable: what lies beyond the cursor is sent again. */
  readonly uncounted = new Set<string>()
  readonly versions = new Map<string, number>()
  readonly #plans = new Map<string, Answer[]>()
  readonly #tasks: Task[] = []
  /** Attempts that may have been spent without a call. */
  readonly #unsent = new Map<string, number>()
  /** Of tasks that are sent again in parts: what has not been answered alone, and how many in a row failed. */
  readonly #halved: { readonly left: Set<string>; inRow: number }[] = []
  /** Set when the process is to die: before or after its next settle, before it records a task. */
  crash: 'before' | 'after' | 'before record' | undefined
  crashes = 0

  constructor(policy: Policy) {
    this.policy = policy
    if (policy.asynchronous) this.poll = async (handles) => handles.map((handle) => this.#outcomeOf(Number(handle)))
    this.capabilities = { keepsOrder: policy.keepsOrder, ledger: policy.ledger, itemsMax: 4 }
  }

  /** The next version of a document, and how its deliveries will go. */
  change(id: string, plan: readonly Answer[]): number {
    const v = (this.versions.get(id) ?? 0) + 1
    this.versions.set(id, v)
    this.#plans.set(`${id}@${v}`, [...plan])
    return v
  }

  async deliver(events: readonly OutboxEvent[], context: DeliveryContext): Promise<Outcome[] | Parked> {
    if (!this.policy.asynchronous) return this.#judge(events, context)
    for (const event of events) {
      const plan = this.#plans.get(nameOf(event))
      if (plan?.[0] !== 'crash-before') continue
      plan.shift()
      this.crash = 'before record'
    }
    const task = this.#tasks.push({ events, polls: events.length % 2 }) - 1
    return { parked: String(task) }
  }

  /** A task may take two polls; then it is carried out as a whole, or says no to the whole. */
  #outcomeOf(at: number): Outcome | undefined {
    const task = this.#tasks[at] as Task
    if (task.outcome === undefined && task.polls-- <= 0) task.outcome = this.#carryOut(task.events)
    return task.outcome
  }

  #carryOut(events: readonly OutboxEvent[]): Outcome {
    const [only] = events
    if (events.length === 1 && only !== undefined) return this.#alone(only)
    const plans = events.map((event) => this.#plans.get(nameOf(event)) ?? [])
    if (plans.some(([next]) => next !== undefined && !next.startsWith('crash'))) {
      const names = events.map(nameOf)
      const known = this.#halved.some(({ left }) => names.every((name) => left.has(name)))
      if (!known) this.#halved.push({ left: new Set(names), inRow: 0 })
      return split()
    }
    for (const event of events) this.#answer(event)
    return delivered()
  }

  /** Three in a row that fail alone: the sink counts as broken, and the rest fails with them, unsent. */
  #alone(event: OutboxEvent): Outcome {
    const outcome = this.#answer(event)
    const halved = this.#halved.findLast(({ left }) => left.delete(nameOf(event)))
    if (halved === undefined) return outcome
    halved.inRow = outcome.outcome === 'retry' ? halved.inRow + 1 : 0
    if (halved.inRow < brokenRow) return outcome
    for (const name of halved.left) this.#unsent.set(name, (this.#unsent.get(name) ?? 0) + 1)
    halved.left.clear()
    return outcome
  }

  async #judge(events: readonly OutboxEvent[], context: DeliveryContext): Promise<Outcome[]> {
    const failed = new Set<string>()
    const outcomes: Outcome[] = []
    for (const event of events) {
      if (this.policy.ledger) await context.sending(event)
      const behind = this.policy.keepsOrder && failed.has(event.aggregateId)
      const outcome = behind ? retry({ code: 'behind' }) : this.#answer(event)
      if (outcome.outcome !== 'delivered') failed.add(event.aggregateId)
      outcomes.push(outcome)
    }
    if (outcomes.some(({ outcome }) => outcome === 'unavailable')) this.#uncount(events, outcomes)
    return outcomes
  }

  #uncount(events: readonly OutboxEvent[], outcomes: readonly Outcome[]): void {
    for (const [index, { aggregateId, payload }] of events.entries()) {
      const failed = ['retry', 'rejected'].includes(outcomes[index]?.outcome ?? '')
      if (failed) this.uncounted.add(`${aggregateId}@${(payload as { v: number }).v}`)
    }
  }

  #answer({ aggregateId: id, payload }: OutboxEvent): Outcome {
    const { v } = payload as { v: number }
    const name = `${id}@${v}`
    const answer = this.#plans.get(name)?.shift()
    if (answer === 'retry') {
      this.spent.set(name, (this.spent.get(name) ?? 0) + 1)
      return retry()
    }
    if (answer === 'rejected') {
      this.refused.add(name)
      return rejected()
    }
    if (answer === 'unavailable') return unavailable()
    if (answer !== undefined) this.crash = answer === 'crash-before' ? 'before' : 'after'
    this.#accept(id, v)
    return delivered()
  }

  #accept(id: string, v: number): void {
    const list = this.accepted.get(id) ?? []
    list.push(v)
    this.accepted.set(id, list)
  }

  /** May this version be a dead letter? Only if it was refused, or its attempts are spent. */
  mayDie(id: string, v: number): boolean {
    if (this.refused.has(`${id}@${v}`)) return true
    // A newer state that takes a row over takes the attempts over too.
    const first = this.policy.coalesce === 'latest' ? 1 : v
    let spent = 0
    for (let n = first; n <= v; n++) {
      const name = `${id}@${n}`
      spent += (this.spent.get(name) ?? 0) + (this.#unsent.get(name) ?? 0)
    }
    return spent >= this.policy.attemptsMax
  }

  /** What is wrong with the order of what arrived so far; `dead` are the versions given up. */
  disorder(dead: (id: string, v: number) => boolean): string[] {
    return [...this.accepted].flatMap(([id, list]) => this.#disorderOf(id, list, dead))
  }

  #disorderOf(id: string, list: number[], dead: (id: string, v: number) => boolean): string[] {
    const { order, coalesce, ledger, onDead } = this.policy
    const wrong: string[] = []
    if (ledger && new Set(list).size < list.length) wrong.push(`${id}: sent twice: ${list}`)
    if (order === 'none' || coalesce === 'latest') return wrong
    let highest = 0
    for (const v of list) {
      const skipped = Array.from({ length: Math.max(0, v - highest - 1) }, (_, n) => highest + 1 + n)
      const held = skipped.filter((s) => !dead(id, s) || (onDead === 'hold' && !ledger))
      if (held.length > 0) wrong.push(`${id}: ${v} overtook ${held}: ${list}`)
      highest = Math.max(highest, v)
    }
    return wrong
  }

  /** Changes that neither arrived nor have a reason why not. */
  lost(rows: readonly Row[]): string[] {
    const missing: string[] = []
    for (const [id, last] of this.versions)
      for (let v = 1; v <= last; v++) if (!this.#accounted(id, v, rows)) missing.push(`${id}@${v}`)
    return missing
  }

  #accounted(id: string, v: number, rows: readonly Row[]): boolean {
    const { coalesce, onDead, ledger } = this.policy
    const list = this.accepted.get(id) ?? []
    const ends = rows.filter((row) => row.id === id && ['dead', 'unknown'].includes(row.state))
    if (list.includes(v) || ends.some((row) => row.v === v)) return true
    if (coalesce === 'latest' && [...list, ...ends.map((row) => row.v)].some((later) => later > v)) return true
    return onDead === 'hold' && !ledger && ends.some((row) => row.v < v)
  }
}
