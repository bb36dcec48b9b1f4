import * as v from 'valibot'
import type { Annotation } from '../../contract/route.js'
import type { AnnotationKind } from './kind.js'

/** From read-only to irreversible. `open_world`: it reaches beyond this machine. */
const Risk = v.picklist(['read', 'mutating', 'open_world', 'destructive'])
const Visibility = v.picklist(['internal', 'operator', 'session', 'model'])
const words = v.array(v.pipe(v.string(), v.minLength(1)))

/** A route as a tool: a call makes the request with the caller's rights, and returns the reply or the refusal of the route. */
export interface RouteTool {
  /** `thing_list`, for `service__thing_list`. */
  readonly name: string
  /** When to use it, for a model; default: the summary of the route. */
  readonly description?: string
  readonly title?: string
  /** Ids of the toolsets that contain it. */
  readonly toolsets: readonly string[]
  /**
   * Default by the route: `destructive` if it can start code, `mutating` if it changes something, else `read`. This member can only
   * raise the risk.
   */
  readonly risk?: v.InferOutput<typeof Risk>
  /** Default: `model`. A tool that shows other workspaces or secrets has `operator`. */
  readonly visibility?: v.InferOutput<typeof Visibility>
  /** Members that are added to every call and hidden from callers. */
  readonly fixed?: Readonly<Record<string, unknown>>
  /** Schema of the input, for a tool that accepts only a part of the route's body. Default: the schema of the route. */
  readonly input?: v.GenericSchema
  /** Additional search words. */
  readonly tags?: readonly string[]
  /**
   * Checks that the route makes by itself. `judged`: the route applies the approval rules to the content of the call, so that the
   * call itself needs no approval. `bounded`: the route limits the code that the call starts; its default risk is `mutating`. Only
   * plugins of this package may set it.
   */
  readonly inside?: 'judged' | 'bounded'
}

export const RouteTool: AnnotationKind<RouteTool> = {
  of: 'tool@1',
  schema: v.strictObject({
    name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]*$/, 'lower case letters, digits and _')),
    description: v.exactOptional(v.string()),
    title: v.exactOptional(v.string()),
    toolsets: words,
    risk: v.exactOptional(Risk),
    visibility: v.exactOptional(Visibility),
    fixed: v.exactOptional(v.record(v.string(), v.unknown())),
    input: v.exactOptional(v.custom<v.GenericSchema>(value => typeof Object(value)['~run'] === 'function')),
    tags: v.exactOptional(words),
    inside: v.exactOptional(v.picklist(['judged', 'bounded'])),
  }),
  many: true,
}

/**
 * A tool that makes requests to the route; a route can have several.
 * @param name `thing_list`
 * @param toolsets ids of the toolsets that contain it
 */
export const tool = (
  name: string,
  toolsets: readonly string[],
  more: Omit<RouteTool, 'name' | 'toolsets'> = {},
): Annotation => ({ of: RouteTool.of, data: { name, toolsets, ...more } })
