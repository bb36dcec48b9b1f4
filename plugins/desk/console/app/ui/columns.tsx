import type { ComponentChildren } from 'preact'
import { text } from '../text.js'

/** The main column, and the third column if the view has one. */
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
        {aside && (
          // The list before the details may have hundreds of links.
          <a
            class="skip"
            href="#details"
            onClick={event => {
              event.preventDefault()
              document.getElementById('details')?.focus()
            }}
          >
            {text.skipDetails}
          </a>
        )}
        {children}
      </main>
      {aside && (
        <aside class="aside" id="details" tabIndex={-1} aria-label={text.details}>
          {aside}
        </aside>
      )}
    </>
  )
}
