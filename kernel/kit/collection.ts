import * as v from 'valibot'
import type { Awaitable } from '../contract/basics.js'
import { type Annotation, type Method, type Route, type RouteRequest, routeOf } from '../contract/route.js'
import { type CliArgument, type CliView, cli, type RouteCli } from './annotations/cli.js'
import { type ThrownError, throws } from './annotations/describe.js'
import { type Column, type Item, type Member, type ShowMore, show } from './annotations/show.js'

type Schema = v.GenericSchema
type StrictObject = v.StrictObjectSchema<v.ObjectEntries, undefined>
type NameIn<S extends Schema> = keyof v.InferOutput<S> & string
/** What a member of a reply holds, or each item of the list that it holds. */
type Held<S extends Schema, M extends NameIn<S>> = Item<v.InferOutput<S>[M]>

/** A noun of a plugin: where its things are, how they look, and what follows from that for each of its routes. */
export interface Noun<
  P extends string,
  K extends string,
  O extends Schema,
  OM extends NameIn<O>,
  L extends Schema,
  LM extends NameIn<L>,
> {
  /** Of the list; a thing is one segment below it. */
  readonly path: P
  /** Path parameter that tells a thing from the others: `id`. */
  readonly key: K
  /** As commands and summaries call it, `notification preset`. */
  readonly noun: string
  /** Reply with one thing, and the member that holds it. */
  readonly one: readonly [O, OM]
  /** Reply with many, and the member that holds them. */
  readonly many: readonly [L, LM]
  /** Columns of a list. */
  readonly show: readonly Column<Member<Held<L, LM>>>[]
  /** Fields of one thing; default: the columns of a list. */
  readonly fields?: readonly Column<Member<Held<O, OM>>>[]
  /** Of the argument that names a thing. */
  readonly argument?: Omit<CliArgument, 'name' | 'in'>
  /** The error of a thing that is not there. */
  readonly missing: ThrownError
  /**
   * What a caller saw of a thing before it changes or deletes it: the member is put into the body of `update` and `delete`.
   */
  readonly at?: {
    readonly member: 'expected_version' | 'expected_digest'
    readonly schema: v.GenericSchema<unknown, string | number | undefined>
    readonly conflict: ThrownError
  }
}

/** What a caller saw of a thing: the version or digest that it names, where it names one. */
export type Seen = string | number | undefined

/** What one route of a noun says itself; all else follows from the noun. */
export interface NounRoute<S, P extends string, Q extends Schema | undefined, B extends Schema | undefined, R>
  extends Partial<
    Pick<Route, 'origins' | 'privileged' | 'audited' | 'essential' | 'headers' | 'bodyLimit' | 'invalid' | 'listeners'>
  > {
  /** Default: the verb and the noun. */
  readonly summary?: string
  /** Path of its command where the standard verb is only its alias; `false`: it has none. */
  readonly command?: string | false
  /** What else its command has. */
  readonly cli?: Omit<RouteCli, 'path'>
  readonly with?: readonly Annotation[]
  /** Errors beside those of the noun. */
  readonly throws?: readonly ThrownError[]
  readonly query?: Q
  readonly body?: B
  readonly handle: (self: S, request: RouteRequest<P, Q, B>, seen: Seen) => Awaitable<R>
}

/** What differs from one verb to the next. */
interface Verb {
  readonly verb: string
  readonly method: Method
  readonly path: string
  /** The summary unless the route has one. */
  readonly title: string
  readonly replies: Readonly<Record<number, Schema | null>>
  readonly view?: CliView
  readonly body?: Schema | undefined
  readonly bodyOptional?: boolean
  /** Whether it is about one thing, which its command names. */
  readonly isOfOne: boolean
  /** Whether it changes what a caller may have seen before. */
  readonly changes?: boolean
  readonly done?: string
}

/** A route of a noun with its types erased. */
interface AnyRoute<S> extends NounRoute<S, string, Schema | undefined, Schema | undefined, unknown> {}

/**
 * The routes of nouns of a service of type `S`: list, get, create, update and delete with their statuses, commands, views, errors and
 * optimistic versions, and actions on one thing. What is special stays a route.
 * @param shared annotations of every route
 */
export function collectionOf<S>(...shared: readonly Annotation[]) {
  const route = routeOf<S>(...shared) as (definition: object) => Route<S>
  return <
    const P extends string,
    const K extends string,
    O extends Schema,
    const OM extends NameIn<O>,
    L extends Schema,
    const LM extends NameIn<L>,
  >({
    path,
    key,
    noun,
    one: [One, member],
    many: [Many, members],
    show: columns,
    fields = columns as never,
    argument = {},
    missing,
    at,
  }: Noun<P, K, O, OM, L, LM>) => {
    type Below = `${P}/{${K}}`
    type Reply = v.InferInput<O>
    const below: Below = `${path}/{${key}}`
    const a = /^[aeiou]/.test(noun) ? `an ${noun}` : `a ${noun}`
    const view = show(One, member as never, fields as never)
    const withSeen = (schema: Schema | undefined): Schema | undefined =>
      at ? v.strictObject({ ...(schema as StrictObject | undefined)?.entries, [at.member]: at.schema }) : schema

    const make = (
      its: object,
      { verb, isOfOne, changes = false, title, view, done, replies, ...more }: Verb,
    ): Route<S> => {
      const {
        summary = title,
        command = `${noun} ${verb}`,
        cli: own,
        with: others = [],
        throws: errors = [],
        handle,
        ...rest
      } = its as AnyRoute<S>
      const thrown = [...(isOfOne ? [missing] : []), ...(changes && at ? [at.conflict] : []), ...errors]
      const args = isOfOne ? { args: [{ name: key, ...argument }] } : {}
      const seenOf = ({ body }: { readonly body?: Readonly<Record<string, Seen>> }): Seen =>
        changes && at ? body?.[at.member] : undefined
      /** The request as its handler knows it: what was seen comes beside it. */
      const withoutSeen = (request: RouteRequest<string, undefined, undefined>) => {
        if (!changes || !at || request.body === undefined) return request
        const { [at.member]: _, ...others } = request.body as Readonly<Record<string, unknown>>
        return { ...request, body: others as never }
      }
      return route({
        ...rest,
        ...more,
        summary,
        replies,
        with: [
          ...(command === false
            ? []
            : [cli(command, { ...args, ...(view && { view }), ...(done !== undefined && { done }), ...own })]),
          ...(thrown.length > 0 ? [throws(...thrown)] : []),
          ...others,
        ],
        handle: async (self: S, request: RouteRequest<string, undefined, undefined>) => {
          const body = await handle(self, withoutSeen(request), seenOf(request as never))
          return { status: Number(Object.keys(replies)[0]), body }
        },
      })
    }

    return {
      /** How one thing is shown. */
      view,
      /** GET of the list: 200. `empty` is printed where there are none; `problems` is the member with texts that are printed as notes. */
      list: <Q extends Schema | undefined = undefined>({
        empty,
        problems,
        ...its
      }: NounRoute<S, P, Q, undefined, v.InferInput<L>> & ShowMore): Route<S> =>
        make(its, {
          verb: 'list',
          method: 'GET',
          path,
          title: `List ${noun}s`,
          replies: { 200: Many },
          view: show(Many, members as never, columns as never, { empty, problems }),
          isOfOne: false,
        }),
      /** GET of one thing: 200. `reply` tells more of it than the other routes do. */
      get: <Q extends Schema | undefined = undefined, R extends Schema = O>({
        reply,
        ...its
      }: NounRoute<S, Below, Q, undefined, v.InferInput<R>> & { readonly reply?: R }): Route<S> =>
        make(its, {
          verb: 'show',
          method: 'GET',
          path: below,
          title: `Show ${a}`,
          replies: { 200: reply ?? One },
          view,
          isOfOne: true,
        }),
      /** POST to the list: 201. */
      create: <B extends Schema, Q extends Schema | undefined = undefined>(
        its: NounRoute<S, P, Q, B, Reply> & { readonly body: B },
      ): Route<S> =>
        make(its, {
          verb: 'create',
          method: 'POST',
          path,
          title: `Create ${a}`,
          replies: { 201: One },
          view,
          isOfOne: false,
        }),
      /** PATCH of one thing, in which members that are absent stay, or PUT: 200. */
      update: <B extends StrictObject, Q extends Schema | undefined = undefined>({
        method = 'PATCH',
        ...its
      }: NounRoute<S, Below, Q, B, Reply> & { readonly body: B; readonly method?: 'PATCH' | 'PUT' }): Route<S> =>
        make(its, {
          verb: 'update',
          method,
          path: below,
          title: `Change ${a}`,
          body: withSeen(its.body),
          replies: { 200: One },
          view,
          isOfOne: true,
          changes: true,
        }),
      /** DELETE of one thing: 204. `done` is printed then; `{id}` in it stands for the parameter of that name. */
      delete: <Q extends Schema | undefined = undefined>({
        done = `deleted {${key}}`,
        ...its
      }: NounRoute<S, Below, Q, undefined, void> & { readonly done?: string }): Route<S> =>
        make(its, {
          verb: 'delete',
          method: 'DELETE',
          path: below,
          title: `Delete ${a}`,
          body: withSeen(undefined),
          bodyOptional: at !== undefined && v.is(at.schema, undefined),
          replies: { 204: null },
          done,
          isOfOne: true,
          changes: true,
        }),
      /** POST to a verb of one thing: 200 with the thing, or with another `reply`. */
      action: <
        const V extends string,
        B extends Schema | undefined = undefined,
        Q extends Schema | undefined = undefined,
        R extends Schema = O,
      >(
        verb: V,
        { reply, ...its }: NounRoute<S, `${Below}/${V}`, Q, B, v.InferInput<R>> & { readonly reply?: R },
      ): Route<S> =>
        make(its, {
          verb,
          method: 'POST',
          path: `${below}/${verb}`,
          title: `${verb[0]?.toUpperCase()}${verb.slice(1)} ${a}`,
          replies: { 200: reply ?? One },
          ...(reply ? {} : { view }),
          isOfOne: true,
        }),
    }
  }
}
