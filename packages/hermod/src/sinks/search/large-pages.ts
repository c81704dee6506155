/** Pages of whole documents: where an answer would be too large, a smaller page is asked for. */
import { HttpError } from '../http.ts'

/** `size`: of the page that was answered. */
export async function fittingPage<T>(
  size: number,
  ask: (size: number) => Promise<T>,
): Promise<{ readonly answer: T; readonly size: number }> {
  try {
    return { answer: await ask(size), size }
  } catch (error) {
    const large = error instanceof HttpError && error.code === 'HTTP_ANSWER_TOO_LARGE'
    if (!large || size <= 1) throw error
    return fittingPage(Math.ceil(size / 2), ask)
  }
}
