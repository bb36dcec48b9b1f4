// proof: the tests of the plugin `workspaces`, against the extension that takes its place.
import './swap-setup.js'
import '../workspaces.test.js'
import '../workspaces-find.test.js'
import '../workspaces-odd.test.js'
import '../workspaces-remove.test.js'
