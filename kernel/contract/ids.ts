/** Chance as the kernel and plugins see it: the system's, or in tests a sequence that a seed decides. */
export interface Ids {
  /** `bytes` random bytes (1 to 1024) in lower case hexadecimal. */
  hex(bytes: number): string
  /** A new identifier: the prefix, `_` and 16 hexadecimal digits. */
  id(prefix: string): string
  /** A UUID of version 4. */
  uuid(): string
  /** A number from 0 up to but not 1, for jitter and sampling; never for secrets. */
  random(): number
}
