// The fleet: nodes as a table, filtered, sorted and paged by the API.

import {announce, el, fill, when} from "../dom.js";
import {fromLink, request} from "../api.js";
import {address, go} from "../router.js";
import {empty, loading, nodeLink, notice, state, table} from "../parts.js";

export const title = "Fleet";

const FIELDS = "uuid,name,provision_state,provision_updated_at,last_error,resource_class,maintenance";
const FILTERS = ["provision_state", "resource_class", "owner", "description_contains"];
const PAGE = 100;

export async function show(main, {query}, signal) {
  const sorted = query.get("sort_key") ?? "created_at";
  const direction = query.get("sort_dir") ?? "asc";
  const filters = Object.fromEntries(FILTERS.filter((name) => query.get(name)).map((name) => [name, query.get(name)]));
  const list = el("div", {}, loading("Loading nodes …", 12));
  fill(main, el("div", {class: "head"}, el("h1", {}, title)), list);

  const wanted = new URLSearchParams({...filters, fields: FIELDS, sort_key: sorted, sort_dir: direction, limit: PAGE});
  if (query.get("marker")) wanted.set("marker", query.get("marker"));
  const {json, error} = await request("GET", `/v1/nodes?${wanted}`, {signal});
  if (error) {
    fill(list, notice(error, () => show(main, {query}, signal)));
    return;
  }
  const column = (key, text) => ({text, sorted: sorted === key ? `${direction}ending` : null,
    sort: () => go(address("fleet", {...filters, sort_key: key,
      sort_dir: sorted === key && direction === "asc" ? "desc" : "asc"}))});
  fill(list, json.nodes.length === 0 ? empty("No node.") : table("Nodes", [
    column("name", "Name"), column("provision_state", "State"), column("provision_updated_at", "Since"),
    column("resource_class", "Resource class"), "Last error",
  ], json.nodes.map((node) => [
    {class: "name", children: nodeLink(node)}, state(node.provision_state),
    {class: "nowrap", children: when(node.provision_updated_at)}, node.resource_class,
    {class: "long", children: node.last_error},
  ])),
  json.next && el("p", {}, el("a", {
    href: address("fleet", {...filters, sort_key: sorted, sort_dir: direction,
      marker: new URLSearchParams(fromLink(json.next).split("?")[1]).get("marker")})}, "Next page")));
  announce(`${json.nodes.length} nodes`);
}
