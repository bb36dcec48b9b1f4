// A process carries the mark of the daemon that started it as its soft limit of resident memory (RLIMIT_RSS), in KiB: `2^52 + home
// * 2^16 + number`. Linux ignores this limit since 2.4.30, any user may set it, every descendant inherits it regardless of its
// environment, group and parents, and /proc/<pid>/stat shows it for processes of all users. It is so large that a program which
// does respect it never reaches it. The hard limit is unchanged, so that a daemon of another home below such a process can mark its
// own.
const base = 2 ** 52
const numbers = 2 ** 16

/** Processes of a home are numbered from 1 to this. */
export const lastNumber = numbers - 1

/** The mark of a process; `home` is 36 bits of the home's identity. */
export function markFor(home: number, number: number): number {
  return base + home * numbers + number
}

/** The number in a mark of this home; 0 for any other mark. */
export function numberIn(mark: number, home: number): number {
  const number = mark - markFor(home, 0)
  return number > 0 && number <= lastNumber ? number : 0
}

/** The mark in a limit in bytes, as in /proc/<pid>/stat; 0 for other limits. Products of 1024 are exact up to 2^63. */
export function markOfLimit(bytes: string | undefined): number {
  const mark = Number(bytes) / 1024
  return Number.isInteger(mark) && mark >= base && mark < 2 * base ? mark : 0
}
