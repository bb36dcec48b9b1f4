import { readFileSync } from 'node:fs'
import path from 'node:path'
import { kernelPoints } from '../../kernel/contract/kernel-hooks.js'
import type { HookEntry, HookTable } from '../../kernel/plugin.js'
import { inTree } from '../../plugins/index.js'
import { fieldsOf } from '../../plugins/work/hooks/families.js'
import { hookEvents, reachOf } from '../../plugins/work/hooks/hook-events.js'
import { HookEvent } from '../../schemas/hooks.js'
import { hookEventText } from './hook-events-text.js'
import { byName, code, page, table } from './markdown.js'
import { apis, bracketed, commentBefore, endOf } from './sources.js'

export interface PluginHook {
  readonly plugin: string
  readonly name: string
  readonly kind: HookEntry<unknown>['kind']
  readonly type: string
  readonly comment: string
}

/** An entry of a table of hooks in a source: `saving: gate<[workspace: Workspace]>(`. */
const ENTRY = /^ {2}(\w+): (notify|announce|pipeline|gate|guard)(?=<)/gm

/** The hooks of plugins: those in tables, and those that `api.ts` exposes individually. */
export const pluginHooks = (): PluginHook[] =>
  apis().flatMap(({ plugin, text }) => [
    ...entriesIn(text).map(entry => ({ plugin, ...entry })),
    ...[...text.matchAll(/readonly (\w+): Hook(?=<)/g)].map(match => ({
      plugin,
      name: match[1] as string,
      kind: 'notify' as const,
      type: bracketed(text, match.index + match[0].length),
      comment: commentBefore(text, match.index),
    })),
  ])

/** Name and summary of an entry, after its type arguments. */
const WORDS = /^>\(\s*'([^']+)',\s*(?:'((?:\\.|[^'\\])*)'|"((?:\\.|[^"\\])*)")/

/** The hooks of the table in a source. */
const entriesIn = (text: string): Omit<PluginHook, 'plugin'>[] =>
  [...text.matchAll(ENTRY)].map(match => {
    const [whole, name = '', kind = ''] = match
    const open = match.index + whole.length
    const args = bracketed(text, open)
    const words = WORDS.exec(text.slice(endOf(text, open)))
    if (!words) throw new Error(`the entry ${name} of a table of hooks has no name and summary`)
    const [, own, single, double] = words
    const summary = (single ?? double ?? '').replace(/\\(.)/g, '$1')
    const entry = { name, kind: kind as PluginHook['kind'], type: tapOf(kind as PluginHook['kind'], args) }
    return { ...entry, comment: own === name ? summary : `\`${own}\`: ${summary}` }
  })

/** The type of a tap, from the type arguments of an entry. */
function tapOf(kind: PluginHook['kind'], args: string): string {
  const parts = partsOf(args)
  const tuple = kind === 'pipeline' ? parts[1] : parts[0]
  const rest = (tuple ?? '[]').slice(1, -1).trim()
  const given = (first: string) => [first, rest].filter(Boolean).join(', ')
  if (kind === 'pipeline') return `(${given(`value: ${parts[0]}`)}) => Awaitable<${parts[0]} | undefined>`
  if (kind === 'guard') return `(${given('t: Tx')}) => Fault | undefined`
  if (kind !== 'gate') return `(${rest}) => ${kind === 'announce' ? 'void' : 'unknown'}`
  return `(${rest}) => Awaitable<Fault | ${parts[1] === undefined ? '' : `${parts[1]} | `}undefined>`
}

/** Splits type arguments at their top-level commas. */
function partsOf(args: string): string[] {
  const parts = ['']
  let depth = 0
  for (const [at, character] of [...args].entries()) {
    if ('<({['.includes(character)) depth++
    if (')}]'.includes(character) || (character === '>' && args[at - 1] !== '=')) depth--
    if (character === ',' && depth === 0) parts.push('')
    else parts[parts.length - 1] += character
  }
  return parts.map(part => part.trim()).filter(Boolean)
}

/** The hooks of the kernel. */
function kernelHooks(): string[][] {
  const file = path.join(import.meta.dirname, '../../kernel/contract/kernel-hooks.ts')
  const text = readFileSync(file, 'utf8')
  const typed = new Map(entriesIn(text).map(({ name, type }) => [name, type]))
  return Object.entries<HookTable[string]>(kernelPoints).map(([name, { summary }]) => {
    const type = typed
      .get(name)
      ?.replace(/^\((?=\))/, '(self')
      .replace(/^\((?=\w+:)/, '(service, ')
    // Taps of this one are named by the kind of the record.
    return [code(name), code(name === 'write' ? `Readonly<Record<string, ${type}>>` : `${type}`), summary]
  })
}

export function hooksPage(): string {
  const hooks = pluginHooks().map(({ plugin, name, kind, type, comment }) => [
    plugin,
    code(name),
    kind,
    code(type),
    comment,
  ])
  const programs = HookEvent.options.map(event => {
    const { sync, patch, emitted } = hookEvents[event]
    const fields = fieldsOf(event).map(code).join(', ')
    return [
      code(event),
      hookEventText(event),
      emitted ? 'yes' : 'not yet',
      sync ? 'sync, async' : 'async',
      patch.map(code).join(', '),
      fields,
      reachOf(event),
    ]
  })
  const events = inTree.flatMap(({ name, surface }) => (surface.events ?? []).map(event => [code(event.name), name]))
  return page(
    'Hooks and events',
    `## Hooks of plugins

A tap names the token of the plugin and the hook: ${code('tap(Workspaces, workspaces => workspaces.deleting, service => …)')}. See
[plugins.md](../plugins.md#hooks) for the kinds and what happens when a tap fails.`,
    table(['plugin', 'hook', 'kind', 'tap', 'meaning'], hooks),
    `## Hooks of the kernel

Tapped with the surface entry ${code('hooks')}.`,
    table(['hook', 'tap', 'meaning'], kernelHooks()),
    `## Events of the journal

Declared on plugin surfaces and stored by the ${code('events')} plugin. Access them with ${code('requires: { events: Events }')} from ${code('svc/plugins/events')}.`,
    table(['event', 'plugin'], events.sort(byName(([name = '']) => name))),
    `## Hook events

Events for the ${code('hooks')} setting, hooks in agent definitions and skills, ${code('[[resources.hooks]]')} in extension manifests and
records of kind ${code('hook.binding')}; see [hooks.md](../hooks.md). The daemon waits for sync hooks, which may set the patch fields;
${code('deny')} aborts the operation. Async hooks only observe.`,
    table(['event', 'dispatched', 'emitted', 'modes', 'patch fields', 'matcher fields', 'coverage'], programs),
  )
}
