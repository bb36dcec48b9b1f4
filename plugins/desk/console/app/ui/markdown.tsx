import { signal } from '@preact/signals'
import { useEffect, useRef } from 'preact/hooks'

type Render = (source: string) => DocumentFragment

const render = signal<Render | undefined>(undefined)
let isRequested = false

/** Loads what renders Markdown, when the first text of it is shown. */
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

/** Text of an agent. Until the renderer is loaded it is shown as it is. */
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
