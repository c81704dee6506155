/** What to do about each problem: for the page it leads to and for the reference. */
import type { ProblemCode } from '../problems.ts'

export const problemAdvice: Readonly<Record<ProblemCode, string>> = {
  HMD_REQUEST_INVALID: 'Correct the fields listed in `errors`; all of them are listed at once.',
  HMD_JSON_INVALID:
    'Send JSON (RFC 8259), at most 64 levels and 20,000 values, without `__proto__`.',
  HMD_CURSOR_INVALID:
    'Start again without a cursor; a cursor serves only the list and filter it came from.',
  HMD_KEY_MISSING:
    'Send `Idempotency-Key` with a new text per request, the same for its repetition.',
  HMD_UNAUTHENTICATED: 'Send one valid token: `Authorization: Bearer …`.',
  HMD_FORBIDDEN: 'Ask for the permission that `detail` names, or use a token that has it.',
  HMD_SIGN_IN_AGAIN: 'Sign in again and repeat the request with the new token.',
  HMD_NOT_APPROVER: 'Be listed under `approvers` first.',
  HMD_OWN_DOCUMENT: 'Let another approver decide.',
  HMD_NOT_FOUND: 'Check the id; what is not yours to see looks the same as what does not exist.',
  HMD_METHOD_NOT_ALLOWED: 'Use one of the methods in `Allow`.',
  HMD_REQUEST_SLOW: 'Send headers within 15 s and the body within 30 s.',
  HMD_CONFLICT: 'Read it again; `detail` names the state it is in.',
  HMD_TRANSITION_ILLEGAL: 'Choose one of the statuses in `allowed`.',
  HMD_NOT_IN_REVIEW: 'Publish it for review first.',
  HMD_ALREADY_DECIDED: 'Change the decision with PATCH.',
  HMD_NOT_DECIDED: 'Decide with POST or DELETE first.',
  HMD_FILE_REGISTERED: 'Use the document that has the file.',
  HMD_KEY_IN_USE: 'Wait for the first answer, then repeat.',
  HMD_VERSION_STALE: 'Read it again, then repeat with the version in `currentVersion`.',
  HMD_BODY_TOO_LARGE: 'Send less, or use an import.',
  HMD_MEDIA_TYPE: 'Send `Content-Type: application/json`, or what the operation names.',
  HMD_KEY_REUSED: 'Use a new key for a new request.',
  HMD_RULE_BROKEN: 'Correct what `detail` names.',
  HMD_IMPORT_REFUSED: 'Correct the rows listed, or import with best effort.',
  HMD_VERSION_NEEDED: 'Send `If-Match` with the `ETag` you read.',
  HMD_RATE_LIMITED: 'Wait as many seconds as `Retry-After` says.',
  HMD_HEADERS_TOO_LARGE: 'Send less than 16 kB of headers; a token has at most 8 kB.',
  HMD_INTERNAL: 'Repeat later; the log names the cause by `requestId`.',
  HMD_UNAVAILABLE: 'Repeat after `Retry-After`; nothing was changed.',
}
