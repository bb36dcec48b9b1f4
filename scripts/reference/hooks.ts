import { readFileSync } from 'node:fs'
import path from 'node:path'
import { fieldsOf } from '../../plugins/hooks/families.js'
import { hookEvents, reachOf } from '../../plugins/hooks/hook-events.js'
import { inTree } from '../../plugins/index.js'
import { HookEvent } from '../../schemas/hooks.js'
import { byName, code, page, table } from './markdown.js'
import { apis, bracketed, commentBefore } from './sources.js'

export interface PluginHook {
  readonly plugin: string
  readonly name: string
  readonly kind: 'notify' | 'pipeline' | 'gate' | 'guard'
  readonly type: string
  readonly comment: string
}

/** The hooks that plugins show in their `api.ts`. */
export const pluginHooks = (): PluginHook[] =>
  apis().flatMap(({ plugin, text }) =>
    [...text.matchAll(/readonly (\w+): Hook(?=<)/g)].map(match => {
      const type = bracketed(text, match.index + match[0].length)
      const comment = commentBefore(text, match.index)
      return { plugin, name: match[1] as string, kind: kindOf(type), type, comment }
    }),
  )

/** What its taps answer is what tells the kinds apart. */
function kindOf(type: string): PluginHook['kind'] {
  if (type.endsWith('=> unknown')) return 'notify'
  if (/=> (?:Promise|Awaitable)<(?:\w+ \| )*Fault \| (?:\w+ \| )*undefined>$/.test(type)) return 'gate'
  return type.endsWith('=> Fault | undefined') ? 'guard' : 'pipeline'
}

/** The hooks of the kernel, with what their comments say. */
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

A tap names the token of the plugin and the hook: ${code('tap(Workspaces, workspaces => workspaces.deleting, self => …)')}. What each kind
does when a tap fails is in [plugins.md](../plugins.md#hooks).`,
    table(['plugin', 'hook', 'kind', 'tap', 'meaning'], hooks),
    `## Hooks of the kernel

Tapped by the surface entry ${code('hooks')}.`,
    table(['hook', 'tap', 'meaning'], kernelHooks()),
    `## Events of the journal

Declared on surfaces and kept by the plugin ${code('events')}; ${code('requires: { events: Events }')} of ${code('svc/plugins/events')} gives access to them.`,
    table(['event', 'plugin'], events.sort(byName(([name = '']) => name))),
    `## Events that programs hook

For ${code('hooks')} of the configuration and of agents, ${code('[[resources.hooks]]')} of a manifest and records of the kind ${code('hook.binding')};
[hooks.md](../hooks.md) explains them. A sync hook is waited for, and may refuse or change what stands here; an async hook is told.`,
    table(['event', 'emitted', 'modes', 'may change', 'matcher fields', 'reaches'], programs),
  )
}
