/** The error for a command that was called wrongly. */
import { HermodError } from '../errors.ts'

/** Wrong usage: exit 2. */
export function usage(says: string, fix?: string): HermodError {
  return new HermodError('HMD_USAGE', says, { fix })
}
