import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fieldsOf } from '../../plugins/hooks/families.js'
import { hookEvents, reachOf } from '../../plugins/hooks/hook-events.js'
import { inTree } from '../../plugins/index.js'
import { HookEvent } from '../../schemas/hooks.js'
import { hookEventsText } from './hook-events-text.js'
import { byName, code, page, table } from './markdown.js'
import { apis, bracketed, commentBefore } from './sources.js'

export interface PluginHook {
  readonly plugin: string
  readonly name: string
  readonly kind: 'notify' | 'pipeline' | 'gate' | 'guard'
  readonly type: string
  readonly comment: string
}

/** The hooks that plugins expose in their `api.ts`. */
export const pluginHooks = (): PluginHook[] =>
  apis().flatMap(({ plugin, text }) =>
    [...text.matchAll(/readonly (\w+): Hook(?=<)/g)].map(match => {
      const type = bracketed(text, match.index + match[0].length)
      const comment = commentBefore(text, match.index)
      return { plugin, name: match[1] as string, kind: kindOf(type), type, comment }
    }),
  )

/** The kind of a hook follows from the return type of its taps. */
function kindOf(type: string): PluginHook['kind'] {
  if (type.endsWith('=> unknown')) return 'notify'
  if (/=> (?:Promise|Awaitable)<(?:\w+ \| )*Fault \| (?:\w+ \| )*undefined>$/.test(type)) return 'gate'
  return type.endsWith('=> Fault | undefined') ? 'guard' : 'pipeline'
}

/** The hooks of the kernel, with their comments. */
function kernelHooks(): string[][] {
  const file = path.join(import.meta.dirname, '../../kernel/contract/kernel-hooks.ts')
  const text = readFileSync(file, 'utf8')
  const taps = text.slice(text.indexOf('export interface KernelTaps'))
  return [...taps.matchAll(/^ {2}readonly (\w+)\?: (.+)$/gm)].map(({ 1: name = '', 2: type = '', index }) => [
    code(name),
    code(type),
    commentBefore(taps, index),
  ])
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
      hookEventsText[event],
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

A tap names the token of the plugin and the hook: ${code('tap(Workspaces, workspaces => workspaces.deleting, self => …)')}. See
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
