/** Annotations of routes: functions that make them, and functions by which readers find them. */

import { Cli } from './cli.js'
import { Description, Thrown } from './describe.js'
import type { AnnotationKind } from './kind.js'
import { RunsCode } from './runs-code.js'
import { RouteTool } from './tool.js'

export * from './cli.js'
export * from './describe.js'
export * from './kind.js'
export * from './runs-code.js'
export * from './show.js'
export * from './tool.js'

/** The annotation kinds of the program. */
export const annotationKinds: readonly AnnotationKind<unknown>[] = [Cli, Description, Thrown, RunsCode, RouteTool]
