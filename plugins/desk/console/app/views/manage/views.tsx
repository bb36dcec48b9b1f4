import { text } from '../../text.js'
import { Columns } from '../../ui/columns.js'
import { List, type ListView } from '../../ui/list.js'
import { Empty, Page } from '../../ui/parts.js'
import { agents } from './agents.js'
import { Approvals, Grants, ToolTabs } from './approvals.js'
import { Audit } from './audit.js'
import { bundles } from './bundles.js'
import { doctor } from './doctor.js'
import { extensions, UpdateAll } from './extensions.js'
import { logs } from './logs.js'
import { Marketplace } from './marketplace.js'
import { mcp } from './mcp.js'
import { plugins } from './plugins.js'
import { LogTabs, ProgramLog } from './program-log.js'
import { Bridges } from './reach/bridges.js'
import { Network } from './reach/network.js'
import { settings } from './settings.js'
import { SidecarPage } from './sidecar.js'
import { skills } from './skills.js'
import { Support } from './support.js'
import { tools } from './tools.js'
import { vault } from './vault.js'
import { workspaces } from './workspaces.js'

// biome-ignore lint/suspicious/noExplicitAny: each list has items of its own type, which only its own functions get
const lists: readonly ListView<any>[] = [...[agents, skills, bundles, plugins, workspaces, settings, vault, doctor]]

/** One view of this part. @param at the segments of the address after the name of the view */
export function ManageView({ name, at: [id, part, rest] }: { readonly name: string; readonly at: readonly string[] }) {
  if (name === 'agents' && id !== undefined && (part === 'soul' || part === 'heartbeat'))
    return <SidecarPage id={id} which={part} />
  if (name === 'approvals') return <Approvals selected={id} />
  if (name === 'grants') return <Grants selected={id} />
  if (name === 'audit') return <Audit selected={id} />
  if (name === 'bridges') return <Bridges selected={id} edits={part === 'edit'} />
  if (name === 'marketplace') return <Marketplace selected={id} />
  if (name === 'network') return <Network part={id} selected={part} conversation={rest} />
  if (name === 'support') return <Support />
  if (name === 'extensions')
    return <List view={extensions} path={['manage', 'extensions']} selected={id} foot={<UpdateAll />} />
  if (name === 'mcp') return <List view={mcp(part === 'edit')} path={['manage', 'mcp']} selected={id} />
  if (name === 'tools')
    return (
      <List view={tools} path={['manage', 'tools']} selected={id}>
        <ToolTabs current="tools" />
      </List>
    )
  if (name === 'logs') {
    if (id === 'program') return <ProgramLog />
    return (
      <List view={logs} path={['manage', 'logs']} selected={id}>
        <LogTabs current="events" />
      </List>
    )
  }
  const view = lists.find(one => one.name === name)
  if (view) return <List key={view.name} view={view} path={['manage', view.name]} selected={id} />
  return (
    <Columns>
      <Page title={text.manage.title}>
        <Empty>{text.unknownView}</Empty>
      </Page>
    </Columns>
  )
}
