import { readFileSync } from 'node:fs'
import { SourceMap } from 'node:module'
import { dirname, relative, resolve } from 'node:path'
import { root } from './sources.mjs'

let map
let mapped

/** Maps stack positions in the bundle to the original sources. */
export function translateStacks(text, bundle) {
  if (bundle === undefined || !text.includes(bundle)) return text
  const escaped = bundle.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')
  return text.replace(new RegExp(`(?:file://)?${escaped}:(\\d+):(\\d+)`, 'g'), (place, line, column) => {
    if (mapped !== bundle) [map, mapped] = [new SourceMap(JSON.parse(readFileSync(`${bundle}.map`, 'utf8'))), bundle]
    const { originalSource, originalLine, originalColumn } = map.findEntry(line - 1, column - 1)
    if (originalSource === undefined) return place
    return `${relative(root, resolve(dirname(bundle), originalSource))}:${originalLine + 1}:${originalColumn + 1}`
  })
}
