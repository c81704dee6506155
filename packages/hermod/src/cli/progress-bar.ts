/** A progress bar on stderr, only on a terminal. */

export interface Progress {
  readonly done: number
  readonly total: number
}

export interface ProgressBar {
  show(progress: Progress): void
  /** Ends the line, so that the next message starts a new one. */
  end(): void
}

const width = 30
const everyMs = 100

export function progressBar(
  what: string,
  { wanted }: { readonly wanted: boolean },
  stream: Pick<NodeJS.WriteStream, 'write' | 'isTTY'> = process.stderr,
): ProgressBar {
  if (!wanted || stream.isTTY !== true) return { show: () => {}, end: () => {} }
  const startedAt = performance.now()
  let shownAt = Number.NEGATIVE_INFINITY
  return {
    show: (progress) => {
      const now = performance.now()
      if (progress.done < progress.total && now - shownAt < everyMs) return
      shownAt = now
      stream.write(`\r\u001b[K${lineOf(what, progress, now - startedAt)}`)
    },
    end: () => stream.write('\r\u001b[K'),
  }
}

function lineOf(what: string, { done, total }: Progress, ms: number): string {
  const part = total === 0 ? 1 : Math.min(1, done / total)
  const full = Math.round(part * width)
  const bar = `${'█'.repeat(full)}${'░'.repeat(width - full)}`
  return `${what} ${bar} ${Math.floor(part * 100)} %  ${done} of ${total}${pace(done, total, ms)}`
}

/** How fast, and how long it will take; nothing in the first second, which says little. */
function pace(done: number, total: number, ms: number): string {
  if (ms < 1_000 || done === 0) return ''
  const perSecond = done / (ms / 1_000)
  const left = Math.ceil((total - done) / perSecond)
  const minutes = left >= 60 ? `${Math.floor(left / 60)} min ` : ''
  return `  ${Math.round(perSecond)}/s, ${minutes}${left % 60} s left`
}
