import { signal } from '@preact/signals'

/** The text that screen readers read out next. */
export const announcement = signal('')

/** Announces a text without moving the focus. */
export function announce(words: string): void {
  // Assigning the same text again would not be read out.
  announcement.value = announcement.value === words ? `${words}\u00a0` : words
}
