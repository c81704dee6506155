// A third of the sabotages; the others run beside it.

import { exerciseShare } from './exercise.ts'

await exerciseShare(1, 3)
