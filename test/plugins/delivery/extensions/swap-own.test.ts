// proof: the tests of the plugin `workspaces`, against the extension that takes its place.
import './swap-setup.js'
import '../../desk/workspaces.test.js'
import '../../desk/workspaces-find.test.js'
import '../../desk/workspaces-odd.test.js'
import '../../desk/workspaces-remove.test.js'
