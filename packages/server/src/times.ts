/** Times as callers write them: RFC 3339 with a zone, as far as both JavaScript and PostgreSQL understand it. */
const TIME = /^(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):\d\d(:\d\d(\.\d{1,9})?)?([Zz]|[+-](\d\d):[0-5]\d)$/

const offsetHoursMax = 15

export function isTime(text: string): boolean {
  const [whole, year, month, day, hour, , , , offset = '0'] = TIME.exec(text) ?? []
  if (whole === undefined || Number(year) === 0 || Number(hour) > 23 || Number(offset) > offsetHoursMax) return false
  const days = new Date(Date.UTC(2000 + (Number(year) % 400), Number(month), 0)).getUTCDate()
  return Number(month) >= 1 && Number(month) <= 12 && Number(day) <= days && !Number.isNaN(Date.parse(text))
}
