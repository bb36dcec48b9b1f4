import { signal } from '@preact/signals'

/** What screen readers are told next. */
export const announcement = signal('')

/** Says something without moving the focus. */
export function announce(words: string): void {
  // The same words twice would be no change, which is not read out.
  announcement.value = announcement.value === words ? `${words}\u00a0` : words
}
