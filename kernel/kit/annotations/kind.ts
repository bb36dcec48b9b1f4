import * as v from 'valibot'
import type { Annotation, Route } from '../../contract/route.js'
import { issueLine } from '../issue-text.js'
import type { DeepReadonly } from '../table.js'

/** A kind of annotation: its name with a major version, the schema of its data, and whether a route may have several. */
export interface AnnotationKind<T> {
  /** `cli@1` */
  readonly of: string
  readonly schema: v.GenericSchema<unknown, T>
  readonly many?: true
}

/** The data of an annotation, as its schema describes it. */
export type DataOf<S extends v.GenericSchema> = DeepReadonly<v.InferOutput<S>>

type Annotated = Pick<Route<never>, 'with'>

/** The data of all annotations of a kind, those of a route's defaults first. */
export function annotationsOf<T>(route: Annotated, { of }: AnnotationKind<T>): T[] {
  return (route.with ?? []).flatMap(annotation => (annotation.of === of ? [annotation.data as T] : []))
}

/** The data of the only annotation of a kind. */
export function annotationOf<T>(route: Annotated, { of }: AnnotationKind<T>): T | undefined {
  return route.with?.find(annotation => annotation.of === of)?.data as T | undefined
}

/** The problem with a route's annotations of these kinds: data that does not match its schema, or a duplicate. */
export function wrongAnnotation(
  annotations: readonly Annotation[],
  kinds: readonly AnnotationKind<unknown>[],
): string | undefined {
  const isAnnotation = (entry: unknown) => /^[a-z][\w.-]*@[1-9]\d*$/.test(String(Object(entry).of))
  if (!Array.isArray(annotations) || !annotations.every(isAnnotation))
    return 'has an entry of `with` that is not an annotation, { of: name@major, data }'
  for (const { of, schema, many } of kinds) {
    const found = annotations.filter(annotation => annotation.of === of)
    if (!many && found.length > 1) return `has the annotation ${of} ${found.length} times; it may occur once`
    for (const { data } of found) {
      const parsed = v.safeParse(schema, data)
      if (!parsed.success) {
        const [issue] = parsed.issues
        return `has an annotation ${of} that is not valid: ${issueLine(issue, 'its data')}`
      }
    }
  }
  return undefined
}
