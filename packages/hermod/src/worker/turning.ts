/** A claim loop's read, and what goes with it: a batch to be settled, a step that was lent. */
import { HermodError } from '../errors.ts'
import type { Batch } from './batch.ts'
import type { Reading } from './reading.ts'
import type { LentStep } from './sequencer.ts'
import { batchOf, type Settling } from './settling.ts'
import type { Station } from './station.ts'

/** Undefined: the subscription is paused, held or has a newer revision. */
export async function readAlong(
  station: Station,
  reading: Reading,
  settling: Settling,
  step: LentStep | undefined,
): Promise<Batch[] | undefined> {
  // Without a step nothing more is expected at once.
  const kept = step === undefined ? settling.take() : settling.takeDue()
  if (kept === undefined && step === undefined) return reading.read(false)
  try {
    const batch = kept && batchOf(kept, station.workerName)
    const turned = await reading.turn({ step: step?.rows, batch })
    step?.ended(turned.step)
    if (kept !== undefined) settling.landed(kept, turned.settled)
    return turned.batches
  } catch (error) {
    step?.failed(error)
    if (step !== undefined && error instanceof HermodError) {
      // The numbering refuses, and nothing of this happened: the rest goes without it.
      settling.keep(kept)
      return readAlong(station, reading, settling, undefined)
    }
    if (kept === undefined) throw error
    await settling.failed(kept, error)
    return []
  }
}
