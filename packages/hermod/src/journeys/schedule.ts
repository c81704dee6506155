/** When a scheduled journey is due. The start of its slot identifies it for all workers. */
import type { Schedule } from './declared-index.ts'

const dayMs = 86_400_000
/** If it is later than this, a daily journey waits for the next day: nobody wants the night's work at noon. */
const lateMsMax = 3_600_000

/** Undefined: it was due so long ago that it is skipped. */
export function slotOf(schedule: Schedule, nowMs: number): Date | undefined {
  if (schedule.everyMs !== undefined) {
    return new Date(Math.floor(nowMs / schedule.everyMs) * schedule.everyMs)
  }
  const [hours = 0, minutes = 0] = (schedule.dailyAt as string).split(':').map(Number)
  const today = Math.floor(nowMs / dayMs) * dayMs + (hours * 60 + minutes) * 60_000
  const slotMs = today <= nowMs ? today : today - dayMs
  return nowMs - slotMs <= lateMsMax ? new Date(slotMs) : undefined
}
