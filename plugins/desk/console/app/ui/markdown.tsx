import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

type Render = (source: string) => DocumentFragment

const render = signal<Render | undefined>(undefined)
let isRequested = false

/** Loads the Markdown renderer on first use. */
function load(): void {
  if (isRequested) return
  isRequested = true
  import('./render-markdown.js').then(
    module => {
      render.value = module.renderMarkdown
    },
    () => {
      isRequested = false
    },
  )
}

/** An agent's text. Until the renderer has loaded, the source text is displayed. */
export function Markdown({ source }: { readonly source: string }) {
  const host = useRef<HTMLDivElement>(null)
  const toNodes = render.value
  useEffect(() => {
    load()
    if (!host.current) return
    if (toNodes) host.current.replaceChildren(toNodes(source))
    else host.current.textContent = source
  }, [source, toNodes])
  return <div class="markdown" ref={host} />
}
