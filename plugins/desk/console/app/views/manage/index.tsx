import { linkTo, place } from '../../core/router.js'
import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { lazyView } from '../../ui/lazy.js'
import { Page } from '../../ui/parts.js'

/** A view of this part, for navigation and palette. Its code is loaded on first use. */
export interface ManageEntry {
  readonly name: string
  readonly title: string
  readonly command: string
}

const { manage } = text
const entry = (name: string, title: string, command: string): ManageEntry => ({ name, title, command })

const groups: readonly (readonly [title: string, entries: readonly ManageEntry[]])[] = [
  [
    manage.agents,
    [
      entry('agents', manage.agents, 'svc agent list'),
      entry('skills', manage.skills, 'svc skill list'),
      entry('tools', text.tools.title, 'svc tool list'),
      entry('approvals', text.approvals.title, 'svc tool approvals'),
      entry('grants', text.grants.title, 'svc tool grants list'),
      entry('mcp', text.mcp.title, 'svc mcp list'),
    ],
  ],
  [
    manage.extensions,
    [
      entry('extensions', manage.extensions, 'svc extension list'),
      entry('marketplace', text.marketplace.title, 'svc marketplace search'),
      entry('bundles', text.bundles.title, 'svc bundle catalog'),
      entry('plugins', manage.plugins, 'svc plugin list'),
    ],
  ],
  [
    text.manageGroups.reach,
    [
      entry('bridges', text.bridges.title, 'svc bridge list'),
      entry('network', text.network.title, 'svc network channels list'),
    ],
  ],
  [
    text.manageGroups.daemon,
    [
      entry('workspaces', text.workspaces.title, 'svc workspace list'),
      entry('settings', manage.settings, 'svc config list'),
      entry('vault', text.vault.title, 'svc vault list'),
      entry('doctor', manage.doctor, 'svc doctor'),
      entry('audit', text.audit.title, 'svc audit list'),
      entry('logs', manage.logs, 'svc logs events'),
      entry('support', text.support.title, 'svc support bundle'),
    ],
  ],
]

export const manageViews: readonly ManageEntry[] = groups.flatMap(([, entries]) => entries)

const View = lazyView(manage.title, async () => (await import('./views.js')).ManageView)

export function Manage() {
  const [, name, ...at] = place.value
  if (name !== undefined) return <View name={name} at={at} />
  return (
    <Columns>
      <Page title={manage.title} command="svc help">
        {groups.map(([title, entries]) => (
          <section key={title}>
            <h2>{title}</h2>
            <ul class="tiles">
              {entries.map(({ name, title, command }) => (
                <li key={name}>
                  <a class="card tile" href={linkTo('manage', name)}>
                    <strong>{title}</strong>
                    <code>{command}</code>
                  </a>
                </li>
              ))}
            </ul>
          </section>
        ))}
      </Page>
    </Columns>
  )
}
