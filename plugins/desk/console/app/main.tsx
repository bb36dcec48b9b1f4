import { type ComponentChildren, render } from 'preact'
import { useEffect, useState } from 'preact/hooks'
import { signedIn, signIn } from './core/api.js'
import './core/events.js'
import { place, replacePlace } from './core/router.js'
import { installWorker } from './core/worker.js'
import { text } from './text.js'
import { Columns } from './ui/columns.js'
import { Command, Empty, Loading, Page, Problem } from './ui/parts.js'
import { Shell } from './ui/shell.js'
import { Automation } from './views/automation/index.js'
import { Home } from './views/home/index.js'
import { Manage } from './views/manage/index.js'
import { Work } from './views/work/index.js'

const sessions = () => import('./views/sessions/index.js')
const desktops = () => import('./views/desktops/index.js')

/** A view whose code is loaded on first use. */
function Later<T>({
  load,
  show,
}: {
  readonly load: () => Promise<T>
  readonly show: (loaded: T) => ComponentChildren
}) {
  const [loaded, set] = useState<T>()
  useEffect(() => void load().then(module => set(() => module)), [])
  if (!loaded)
    return (
      <Columns>
        <Loading />
      </Columns>
    )
  return <>{show(loaded)}</>
}

function View() {
  const [view = 'home'] = place.value
  if (view === 'home') return <Home />
  if (view === 'sessions') return <Later key={view} load={sessions} show={({ Sessions }) => <Sessions />} />
  if (view === 'work') return <Work />
  if (view === 'desktops') return <Later key={view} load={desktops} show={({ Desktops }) => <Desktops />} />
  if (view === 'automation') return <Automation />
  if (view === 'manage') return <Manage />
  return (
    <Columns>
      <Page title={text.product}>
        <Empty>{text.unknownView}</Empty>
      </Page>
    </Columns>
  )
}

/** The page for a browser without a session. */
function Login({ error }: { readonly error: unknown }) {
  useEffect(() => {
    document.title = `${text.login.title} · ${text.product}`
  }, [])
  return (
    <main class="login">
      <span class="mark" aria-hidden="true" />
      <h1>{text.login.title}</h1>
      <Problem error={error} />
      <p>{text.login.how}</p>
      <Command line="svc open" />
      <p class="muted">{text.login.valid}</p>
    </main>
  )
}

function App() {
  const [view, code] = place.value
  const [error, setError] = useState<unknown>()
  const isLink = view === 'login' && code !== undefined
  useEffect(() => {
    if (!isLink) return
    // The code leaves the address at once, so that no history entry or bookmark contains it.
    replacePlace('home')
    setError(undefined)
    signIn(code).catch(setError)
  }, [isLink, code])
  if (signedIn.value)
    return (
      <Shell>
        <View />
      </Shell>
    )
  if (isLink)
    return (
      <main class="login">
        <p role="status">{text.login.begin}</p>
      </main>
    )
  return <Login error={error} />
}

installWorker()
render(<App />, document.getElementById('app')!)
