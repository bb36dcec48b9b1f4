import * as v from 'valibot'
import type { Annotation, Route } from '../../contract/route.js'
import { type AnnotationKind, annotationOf } from './kind.js'

export const RunsCode: AnnotationKind<boolean> = { of: 'runs-code@1', schema: v.boolean() }

/**
 * Declares whether a route can start code on this machine or change the code that may start. Default: every method except GET
 * can.
 */
export const runsCode = (can: boolean): Annotation => ({ of: RunsCode.of, data: can })

/** Whether a route can start code on this machine, as declared or by the default for its method. */
export const canRunCode = (route: Pick<Route<never>, 'method' | 'with'>): boolean =>
  annotationOf(route, RunsCode) ?? route.method !== 'GET'
