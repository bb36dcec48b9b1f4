import type { ComponentChildren } from 'preact'
import { text } from '../text.js'

/** The main column, and the third one where a view has it. */
export function Columns({
  children,
  aside,
}: {
  readonly children: ComponentChildren
  readonly aside?: ComponentChildren
}) {
  return (
    <>
      <main id="content" tabIndex={-1} class={aside ? 'with-aside' : ''}>
        {children}
      </main>
      {aside && (
        <aside class="aside" aria-label={text.details}>
          {aside}
        </aside>
      )}
    </>
  )
}
