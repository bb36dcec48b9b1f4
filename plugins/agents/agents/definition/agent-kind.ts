import * as v from 'valibot'
import { kind } from '../../../../kernel/plugin.js'
import { definitionOf, MAX_DEFINITION_BYTES } from './definition.js'
import { Frontmatter } from './frontmatter.js'

/** Spec of a record of kind `agent`: the fields of an AGENT.md file and its text; unknown members are dropped. */
export const AgentSpec = v.object({
  ...Frontmatter.entries,
  prompt: v.pipe(v.string(), v.trim()),
  /** Path in the package; shown, never opened. */
  source_path: v.optional(v.pipe(v.string(), v.maxLength(1024))),
  /** Key of its extension: it runs and resolves secrets as that extension. */
  extension: v.optional(v.pipe(v.string(), v.maxLength(256))),
})
export type AgentSpec = v.InferOutput<typeof AgentSpec>

/** Definitions that packages and programs provide, as records. */
export const AgentKind = kind<AgentSpec>({
  name: 'agent',
  spec: AgentSpec,
  maxBytes: MAX_DEFINITION_BYTES,
  check({ spec }) {
    try {
      definitionOf(spec, spec.prompt, '', { origin: 'global', source: 'record' })
      return undefined
    } catch (error) {
      return (error as Error).message
    }
  },
})
