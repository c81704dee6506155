/** How long the tasks of a double take where a test is about outages, replays or rebuilds: as long as on a real server. */
export type TaskTime = number | readonly [leastMs: number, mostMs: number]

export const slowTasks: TaskTime = [100, 700]

/** A number as it is; of two, anything in between. */
export function timeOf(time: TaskTime): number {
  if (typeof time === 'number') return time
  const [least, most] = time
  return least + Math.random() * (most - least)
}
