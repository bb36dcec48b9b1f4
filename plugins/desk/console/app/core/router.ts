import { computed, signal } from '@preact/signals'

/** Views have addresses in the fragment, so that the daemon serves one page and no log contains what is looked at. */
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

/** Replaces the address without an entry in the history: for one with a secret. */
export function replacePlace(...segments: readonly string[]): void {
  history.replaceState(null, '', linkTo(...segments))
  hash.value = location.hash
}
