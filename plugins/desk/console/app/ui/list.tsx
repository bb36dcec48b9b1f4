import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { useResource } from '../core/resource.js'
import { go, linkTo } from '../core/router.js'
import { text } from '../text.js'
import { Columns } from './columns.js'
import { Command, Empty, Loading, Page, Problem } from './parts.js'

/** The description of a list view: the list, and the details of an item. */
export interface ListView<T> {
  readonly name: string
  readonly title: string
  /** The command that prints this list. */
  readonly command: string
  readonly load: (signal: AbortSignal) => Promise<readonly T[]>
  /** Event types that reload the list. */
  readonly changes?: RegExp
  readonly id: (item: T) => string
  /** The first column is a link to the details. */
  readonly columns: readonly {
    readonly header: string
    readonly cell: (item: T) => ComponentChildren
    readonly wide?: true
  }[]
  readonly empty: string
  readonly filter?: true
  /** The text that the filter searches; default: the id. */
  readonly search?: (item: T) => string
  /** The form for a new item. `done` opens that item, or the list without an id. */
  readonly create?: {
    readonly label: string
    readonly command: string
    readonly show: (done: (id?: string) => void) => ComponentChildren
  }
  readonly detail: {
    readonly title: (item: T) => string
    readonly command: (item: T) => string
    readonly show: (item: T, reload: () => void) => ComponentChildren
  }
}

/** The last segment of the form's address. No item has this id. */
export const NEW = '+'

export function List<T>({
  view,
  path,
  selected,
  children,
  foot,
}: {
  readonly view: ListView<T>
  readonly path: readonly string[]
  readonly selected: string | undefined
  /** Rendered below the list. */
  readonly foot?: ComponentChildren
  /** Rendered above the list. */
  readonly children?: ComponentChildren
}) {
  const { data, error, reload } = useResource(view.load, [view.name], view.changes)
  const [filter, setFilter] = useState('')
  const item = data?.find(one => view.id(one) === selected)
  const { create } = view
  const close = () => {
    go(...path)
    // The focus returns to the link of the closed details.
    const href = linkTo(...path, ...(selected === undefined ? [] : [selected]))
    setTimeout(() => document.querySelector<HTMLElement>(`main a[href="${href}"]`)?.focus())
  }
  const done = (id?: string) => {
    reload()
    go(...path, ...(id === undefined ? [] : [id]))
  }
  const aside =
    create && selected === NEW ? (
      <Detail title={create.label} command={create.command} close={close}>
        {create.show(done)}
      </Detail>
    ) : (
      item && (
        <Detail key={selected} title={view.detail.title(item)} command={view.detail.command(item)} close={close}>
          {view.detail.show(item, reload)}
        </Detail>
      )
    )
  const lookup = filter.toLowerCase()
  const textOf = view.search ?? view.id
  return (
    <Columns aside={aside}>
      <Page
        title={view.title}
        command={view.command}
        actions={
          create && (
            <a class="button" href={linkTo(...path, NEW)}>
              {create.label}
            </a>
          )
        }
      >
        {children}
        {view.filter && (
          <input
            type="search"
            class="filter"
            aria-label={text.manage.filter}
            placeholder={text.manage.filter}
            value={filter}
            onInput={event => setFilter(event.currentTarget.value)}
          />
        )}
        <Problem error={error} retry={reload} />
        {!data && error === undefined && <Loading />}
        {data && (
          <Table
            view={view}
            path={path}
            selected={selected}
            items={data.filter(one => textOf(one).toLowerCase().includes(lookup))}
          />
        )}
        {foot}
      </Page>
    </Columns>
  )
}

function Table<T>({
  view,
  path,
  selected,
  items,
}: {
  readonly view: ListView<T>
  readonly path: readonly string[]
  readonly selected: string | undefined
  readonly items: readonly T[]
}) {
  if (items.length === 0) return <Empty>{view.empty}</Empty>
  return (
    <div class="table" tabIndex={0} role="region" aria-label={view.title}>
      <table>
        <thead>
          <tr>
            {view.columns.map(({ header, wide }) => (
              <th key={header} scope="col" class={wide ? 'wide' : ''}>
                {header}
              </th>
            ))}
          </tr>
        </thead>
        <tbody>
          {items.map(item => {
            const id = view.id(item)
            return (
              <tr key={id} class={id === selected ? 'selected' : ''}>
                {view.columns.map(({ header, cell, wide }, n) => (
                  <td key={header} class={wide ? 'wide' : ''}>
                    {n === 0 ? (
                      <a href={linkTo(...path, id)} aria-current={id === selected ? 'true' : undefined}>
                        {cell(item)}
                      </a>
                    ) : (
                      cell(item)
                    )}
                  </td>
                ))}
              </tr>
            )
          })}
        </tbody>
      </table>
    </div>
  )
}

export function Detail({
  title,
  command,
  close,
  children,
}: {
  readonly title: string
  readonly command: string
  readonly close: () => void
  readonly children: ComponentChildren
}) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    // The focus follows a click on a link into the details. A page that loads with open details keeps its focus.
    if (document.activeElement !== document.body) heading.current?.focus({ preventScroll: true })
  }, [title])
  return (
    <div class="detail">
      <header>
        <h2 ref={heading} tabIndex={-1}>
          {title}
        </h2>
        <button type="button" class="quiet" onClick={close}>
          {text.close}
        </button>
      </header>
      <Command line={command} />
      {children}
    </div>
  )
}
