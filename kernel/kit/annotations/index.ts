/** Annotations of routes: functions that make them, and functions by which readers find them. */
import * as v from 'valibot'
import type { Annotation, Route } from '../../contract/route.js'
import { Cli } from './cli.js'
import { type AnnotationKind, annotationOf, type DataOf } from './kind.js'

export * from './cli.js'
export * from './kind.js'
export * from './show.js'

const Place = v.strictObject({
  /** Section of the document and of the contract. */
  area: v.pipe(v.string(), v.minLength(1)),
  /** Error statuses beyond those that the document gives every route, such as 502. Those of `throws` need no mention. */
  errors: v.optional(v.array(v.pipe(v.number(), v.integer(), v.minValue(400), v.maxValue(599)))),
})
/** The place of a route in the API document. */
export type Description = DataOf<typeof Place>

export const Description: AnnotationKind<Description> = { of: 'describe@1', schema: Place }

/** Puts a route into a section of the API document. */
export const describe = (area: string, more: Omit<Description, 'area'> = {}): Annotation => ({
  of: Description.of,
  data: { area, ...more },
})

const Errors = v.array(
  v.strictObject({ code: v.pipe(v.string(), v.regex(/^[A-Za-z][A-Za-z0-9_]*$/)), status: v.number() }),
)
/** An error that a route may return. */
export type ThrownError = DataOf<typeof Errors>[0]

export const Thrown: AnnotationKind<readonly ThrownError[]> = { of: 'throws@1', schema: Errors, many: true }

/**
 * The errors of a route beyond the common ones; their codes appear in the document (`x-error-codes`).
 * @param errors entries of error tables: `throws(ThingErrors.thing_conflict)`
 */
export const throws = (...errors: readonly ThrownError[]): Annotation => ({
  of: Thrown.of,
  data: errors.map(({ code, status }) => ({ code, status })),
})

export const RunsCode: AnnotationKind<boolean> = { of: 'runs-code@1', schema: v.boolean() }

/**
 * Declares whether a route can start code on this machine or change the code that may start. Default: every method except GET
 * can.
 */
export const runsCode = (can: boolean): Annotation => ({ of: RunsCode.of, data: can })

/** Whether a route can start code on this machine, as declared or by the default for its method. */
export const canRunCode = (route: Pick<Route<never>, 'method' | 'with'>): boolean =>
  annotationOf(route, RunsCode) ?? route.method !== 'GET'

/** From read-only to irreversible. `open_world`: it reaches beyond this machine. */
const Risk = v.picklist(['read', 'mutating', 'open_world', 'destructive'])
const Visibility = v.picklist(['internal', 'operator', 'session', 'model'])
const words = v.pipe(v.array(v.pipe(v.string(), v.minLength(1))), v.readonly())

const Tool = v.strictObject({
  /** `thing_list`, for `service__thing_list`. */
  name: v.pipe(v.string(), v.regex(/^[a-z][a-z0-9_]*$/, 'lower case letters, digits and _')),
  /** When to use it, for a model; default: the summary of the route. */
  description: v.exactOptional(v.string()),
  title: v.exactOptional(v.string()),
  /** Ids of the toolsets that contain it. */
  toolsets: words,
  /**
   * Default by the route: `destructive` if it can start code, `mutating` if it changes something, else `read`. This member can only
   * raise the risk.
   */
  risk: v.exactOptional(Risk),
  /** Default: `model`. A tool that shows other workspaces or secrets has `operator`. */
  visibility: v.exactOptional(Visibility),
  /** Members that are added to every call and hidden from callers. */
  fixed: v.exactOptional(v.record(v.string(), v.unknown())),
  /** Schema of the input, for a tool that accepts only a part of the route's body. Default: the schema of the route. */
  input: v.exactOptional(v.custom<v.GenericSchema>(value => typeof Object(value)['~run'] === 'function')),
  /** Additional search words. */
  tags: v.exactOptional(words),
  /**
   * Checks that the route makes by itself. `judged`: the route applies the approval rules to the content of the call, so that the
   * call itself needs no approval. `bounded`: the route limits the code that the call starts; its default risk is `mutating`. Only
   * plugins of this package may set it.
   */
  inside: v.exactOptional(v.picklist(['judged', 'bounded'])),
})
/** A route as a tool: a call makes the request with the caller's rights, and returns the reply or the refusal of the route. */
export type RouteTool = Readonly<v.InferOutput<typeof Tool>>

export const RouteTool: AnnotationKind<RouteTool> = { of: 'tool@1', schema: Tool, many: true }

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

/** The annotation kinds of the program. */
export const annotationKinds: readonly AnnotationKind<unknown>[] = [Cli, Description, Thrown, RunsCode, RouteTool]
