import * as v from 'valibot'
import type { Annotation, Route } from '../../contract/route.js'
import { type AnnotationKind, annotationOf } from './kind.js'

export const RunsCode: AnnotationKind<boolean> = { of: 'runs-code@1', schema: v.boolean() }

/** Whether a route can start code on this machine or decide what may start; without it every method but GET counts as one. */
export const runsCode = (can: boolean): Annotation => ({ of: RunsCode.of, data: can })

/** Whether a route can make code run on this machine; one that changes something can, unless it says that it cannot. */
export const canRunCode = (route: Pick<Route<never>, 'method' | 'with'>): boolean =>
  annotationOf(route, RunsCode) ?? route.method !== 'GET'
