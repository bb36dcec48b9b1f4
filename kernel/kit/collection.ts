import * as v from 'valibot'
import type { Awaitable } from '../contract/basics.js'
import type { ReplyOf, RouteRequest } from '../contract/route.js'
import { type Annotation, type Method, type Route, routeOf } from '../contract/route.js'
import { type CliArgument, type CliView, cli, type RouteCli } from './annotations/cli.js'
import { type ThrownError, throws } from './annotations/index.js'
import { type Column, type Item, type Member, type ShowMore, show } from './annotations/show.js'

type Schema = v.GenericSchema
type StrictObject = v.StrictObjectSchema<v.ObjectEntries, undefined>
type NameIn<S extends Schema> = keyof v.InferOutput<S> & string
/** The type of a member of a reply, or of the items if the member is a list. */
type Held<S extends Schema, M extends NameIn<S>> = Item<v.InferOutput<S>[M]>

/** A noun of a plugin: the paths and the form of its things, from which its routes follow. */
export interface Noun<
  P extends string,
  K extends string,
  O extends Schema,
  OM extends NameIn<O>,
  L extends Schema,
  LM extends NameIn<L>,
> {
  /** Path of the list; the path of a thing is one segment longer. */
  readonly path: P
  /** Path parameter that identifies a thing: `id`. */
  readonly key: K
  /** Name in commands and summaries, `notification preset`. */
  readonly noun: string
  /** The reply with one thing, and its member that contains the thing. */
  readonly one: readonly [O, OM]
  /** The reply with many things, and its member that contains the list. */
  readonly many: readonly [L, LM]
  /** Columns of a list. */
  readonly show: readonly Column<Member<Held<L, LM>>>[]
  /** Fields of one thing; default: the columns of a list. */
  readonly fields?: readonly Column<Member<Held<O, OM>>>[]
  /** Options of the argument that names a thing. */
  readonly argument?: Omit<CliArgument, 'name' | 'in'>
  /** The error for a missing thing. */
  readonly missing: ThrownError
  /**
   * The version or digest that a caller saw before it changes or deletes a thing: the member is added to the body of `update` and
   * `delete`.
   */
  readonly at?: {
    readonly member: 'expected_version' | 'expected_digest'
    readonly schema: v.GenericSchema<unknown, string | number | undefined>
    readonly conflict: ThrownError
  }
}

/** The version or digest that the caller saw, if it gave one. */
export type Seen = string | number | undefined

/** The part of a noun's route that does not follow from the noun. */
export interface NounRoute<S, P extends string, Q extends Schema | undefined, B extends Schema | undefined, R>
  extends Partial<
    Pick<Route, 'origins' | 'privileged' | 'audited' | 'essential' | 'headers' | 'bodyLimit' | 'invalid' | 'listeners'>
  > {
  /** Default: the verb and the noun. */
  readonly summary?: string
  /** Path of its command, whose standard verb becomes an alias; `false`: no command. */
  readonly command?: string | false
  /** Further options of its command. */
  readonly cli?: Omit<RouteCli, 'path'>
  readonly with?: readonly Annotation[]
  /** Errors in addition to those of the noun. */
  readonly throws?: readonly ThrownError[]
  readonly query?: Q
  readonly body?: B
  readonly handle: (service: S, request: RouteRequest<P, Q, B>, expected: Seen) => Awaitable<R>
}

/** The differences between the verbs. */
interface Verb {
  readonly verb: string
  readonly method: Method
  readonly path: string
  /** Default of the summary. */
  readonly title: string
  readonly replies: Readonly<Record<number, Schema | null>>
  readonly view?: CliView
  readonly body?: Schema | undefined
  readonly bodyOptional?: boolean
  /** Whether it changes a thing, so that the seen version matters. */
  readonly changes?: boolean
  readonly done?: string
}

/** A route of a noun with its types erased. */
interface AnyRoute<S> extends NounRoute<S, string, Schema | undefined, Schema | undefined, unknown> {}

/**
 * The routes of nouns of a service of type `S`: list, get, create, update and delete with their statuses, commands, views, errors
 * and optimistic versions, and actions on one thing. Routes that differ from these are written with `routeOf`.
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

    const make = (its: object, { verb, changes = false, title, view, done, replies, ...more }: Verb): Route<S> => {
      const {
        summary = title,
        command = `${noun} ${verb}`,
        cli: own,
        with: others = [],
        throws: errors = [],
        handle,
        ...rest
      } = its as AnyRoute<S>
      // A route below the list is about one thing, which its command names.
      const isOfOne = more.path !== path
      const thrown = [...(isOfOne ? [missing] : []), ...(changes && at ? [at.conflict] : []), ...errors]
      const args = isOfOne ? { args: [{ name: key, ...argument }] } : {}
      const seenOf = ({ body }: { readonly body?: Readonly<Record<string, Seen>> }): Seen =>
        changes && at ? body?.[at.member] : undefined
      /** The request without the seen version, which the handler gets as a separate argument. */
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
        handle: async (service: S, request: RouteRequest<string, undefined, undefined>) => {
          const body = await handle(service, withoutSeen(request), seenOf(request as never))
          return { status: Number(Object.keys(replies)[0]), body }
        },
      })
    }

    return {
      /** The view of one thing. */
      view,
      /**
       * GET of the list: 200. `empty` is printed for an empty list; `problems` is the member with texts that are printed as notes.
       */
      list: <Q extends Schema | undefined = undefined>({
        empty,
        problems,
        ...its
      }: NounRoute<S, P, Q, undefined, ReplyOf<L>> & ShowMore): Route<S> =>
        make(its, {
          verb: 'list',
          method: 'GET',
          path,
          title: `List ${noun}s`,
          replies: { 200: Many },
          view: show(Many, members as never, columns as never, { empty, problems }),
        }),
      /** GET of one thing: 200. `reply` replaces the usual reply by a more detailed one. */
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
        }),
      /** POST to the list: 201. */
      create: <B extends Schema, Q extends Schema | undefined = undefined>(
        its: NounRoute<S, P, Q, B, Reply> & { readonly body: B },
      ): Route<S> =>
        make(its, { verb: 'create', method: 'POST', path, title: `Create ${a}`, replies: { 201: One }, view }),
      /** PATCH (absent members stay) or PUT of one thing: 200. */
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
          changes: true,
        }),
      /** DELETE of one thing: 204. `done` is printed on success; `{id}` in it is replaced by the parameter of that name. */
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
        }),
    }
  }
}
