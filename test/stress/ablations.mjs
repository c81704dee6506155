// One safeguard taken out at a time. Each must turn a run red: a suite that cannot fail proves
// nothing. Applied to a copy of the built engine, never to the engine itself.

export const ablations = {}
