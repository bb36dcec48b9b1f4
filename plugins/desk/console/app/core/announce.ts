import { signal } from '@preact/signals'

/** The next text for screen readers. */
export const announcement = signal('')

/** Announces a text without moving the focus. */
export function announce(words: string): void {
  // The same words twice would be no change, which is not read out.
  announcement.value = announcement.value === words ? `${words}\u00a0` : words
}
