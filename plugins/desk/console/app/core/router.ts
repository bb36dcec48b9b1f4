import { computed, signal } from '@preact/signals'

/** View addresses are in the fragment: the daemon serves a single page, and its logs contain no view. */
const hash = signal(location.hash)
addEventListener('hashchange', () => {
  hash.value = location.hash
})

/** The segments of the current address: `['sessions', 'ses_1']`. */
export const place = computed(() =>
  hash.value
    .replace(/^#\/?/, '')
    .split('?')[0]!
    .split('/')
    .filter(Boolean)
    .map(segment => {
      try {
        return decodeURIComponent(segment)
      } catch {
        return segment
      }
    }),
)

export const linkTo = (...segments: readonly string[]): string => `#/${segments.map(encodeURIComponent).join('/')}`

export function go(...segments: readonly string[]): void {
  location.hash = linkTo(...segments)
}

/** Replaces the address without a history entry, for an address that contains a secret. */
export function replacePlace(...segments: readonly string[]): void {
  history.replaceState(null, '', linkTo(...segments))
  hash.value = location.hash
}
