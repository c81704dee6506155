// Sizes: `npm test` stays within minutes, CI runs the same tests once more at the sizes we promise.

export const full = process.env.HERMOD_TEST_FULL !== undefined

/** `HERMOD_TEST_FULL=1 npx vitest run FILE` takes the second one. */
export function sized(quick: number, whole: number): number {
  return full ? whole : quick
}
