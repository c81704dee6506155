/**
 * Watches the workspace folder while the server runs: a regular full scan, and a check of
 * single files when the file system reports a change. A missing report only costs time.
 */
import { type FSWatcher, watch } from 'node:fs'
import { errorFields } from '../../log-fields.ts'
import type { Platform } from '../../platform.ts'
import { isMarkdown } from './file-names.ts'
import { type Seen, WorkspaceFolder } from './folder.ts'
import { type ScanReport, scanWorkspace } from './scan.ts'

export interface WatchOptions {
  /** Between full scans. */
  readonly everyMs?: number
  /** How long a file must lie still before it is read. */
  readonly settleMs?: number
  /** Called after each scan that ended. */
  readonly onScan?: (report: ScanReport) => void
}

export interface WorkspaceWatch {
  /** Waits for a scan in progress. Calling it twice is harmless. */
  stop(): Promise<void>
}

export function watchWorkspace(
  platform: Platform,
  { everyMs = 60_000, settleMs = 500, onScan }: WatchOptions = {},
): WorkspaceWatch {
  const seen = new Map<string, Seen>()
  const hinted = new Set<string>()
  let stopped = false
  let watcher: FSWatcher | undefined
  let folder: WorkspaceFolder | undefined
  let running: Promise<void> = Promise.resolve()
  const timers = new Set<NodeJS.Timeout>()

  const after = (ms: number, work: () => Promise<void>) => {
    if (stopped) return
    const timer = setTimeout(() => {
      timers.delete(timer)
      running = running.then(async () => {
        if (!stopped) await work().catch(tell)
      })
    }, ms).unref()
    timers.add(timer)
  }
  const tell = (error: unknown) => platform.log.warn({ code: 'workspace.unreadable', ...errorFields(error) })

  const scan = async (names?: readonly string[]) => {
    folder ??= await WorkspaceFolder.openExisting(platform.config.workspace.folder)
    if (folder === undefined) return
    watcher ??= hints(folder.path, hint)
    const report = await scanWorkspace(platform, folder, {
      settleMs,
      seen,
      ...(names !== undefined && { names }),
    })
    summarise(platform, report)
    for (const { file, kind } of report.found) if (kind === 'later') hint(file)
    onScan?.(report)
  }
  const hint = (name: string) => {
    if (hinted.size === 0) after(settleMs, () => scan(taken()))
    hinted.add(name)
  }
  const taken = () => {
    const names = [...hinted]
    hinted.clear()
    return names
  }
  const full = () =>
    scan().finally(() => {
      after(everyMs, full)
    })
  after(0, full)
  return {
    stop: async () => {
      stopped = true
      for (const timer of timers) clearTimeout(timer)
      watcher?.close()
      await running
    },
  }
}

/** Some file systems give no hints; then the full scans find what there is to find. */
function hints(path: string, hint: (name: string) => void): FSWatcher | undefined {
  try {
    const watcher = watch(path, { persistent: false }, (_event, name) => {
      if (name !== null && isMarkdown(name)) hint(name)
    })
    return watcher.on('error', () => watcher.close())
  } catch {
    return undefined
  }
}

function summarise({ log }: Platform, { counts }: ScanReport): void {
  const { unchanged: _, later: __, ...worth } = counts
  if (Object.values(worth).some((count) => count > 0)) {
    log.info({ code: 'workspace.scanned', ...worth }, 'The workspace folder was scanned')
  }
}
