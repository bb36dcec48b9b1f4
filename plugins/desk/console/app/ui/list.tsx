import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'
import { useResource } from '../core/resource.js'
import { go, linkTo } from '../core/router.js'
import { text } from '../text.js'
import { Columns } from './columns.js'
import { Command, Empty, Loading, Page, Problem } from './parts.js'

/** A list and what it shows of one item. A view of the console is one such description. */
export interface ListView<T> {
  readonly name: string
  readonly title: string
  /** The command that prints the same list. */
  readonly command: string
  readonly load: (signal: AbortSignal) => Promise<readonly T[]>
  /** Types of events after which the list is read again. */
  readonly changes?: RegExp
  readonly id: (item: T) => string
  /** The first column is the link to the item. */
  readonly columns: readonly {
    readonly header: string
    readonly cell: (item: T) => ComponentChildren
    readonly wide?: true
  }[]
  readonly empty: string
  readonly filter?: true
  readonly detail: {
    readonly title: (item: T) => string
    readonly command: (item: T) => string
    readonly show: (item: T, reload: () => void) => ComponentChildren
  }
}

export function List<T>({
  view,
  path,
  selected,
  children,
}: {
  readonly view: ListView<T>
  readonly path: readonly string[]
  readonly selected: string | undefined
  /** Stands above the list. */
  readonly children?: ComponentChildren
}) {
  const { data, error, reload } = useResource(view.load, [view.name], view.changes)
  const [filter, setFilter] = useState('')
  const item = data?.find(one => view.id(one) === selected)
  return (
    <Columns aside={item && <Detail view={view} item={item} reload={reload} close={() => go(...path)} />}>
      <Page title={view.title} command={view.command}>
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
            items={data.filter(one => view.id(one).includes(filter))}
          />
        )}
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

function Detail<T>({
  view,
  item,
  reload,
  close,
}: {
  readonly view: ListView<T>
  readonly item: T
  readonly reload: () => void
  readonly close: () => void
}) {
  return (
    <div class="detail">
      <header>
        <h2>{view.detail.title(item)}</h2>
        <button type="button" class="quiet" onClick={close}>
          {text.close}
        </button>
      </header>
      <Command line={view.detail.command(item)} />
      {view.detail.show(item, reload)}
    </div>
  )
}
