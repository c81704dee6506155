// The types of bound.mjs, for its test.

export type Reason = 'kills' | 'lapses' | 'settles' | 'answers' | 'again' | 'replays' | 'all'

export function duplicateBounds(
  entries: readonly { readonly k: string }[],
): Record<string, Partial<Record<Reason, number>> & { readonly all: number }>
