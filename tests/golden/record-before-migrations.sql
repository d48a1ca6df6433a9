BEGIN TRANSACTION;
CREATE TABLE events (
	uid VARCHAR(32) NOT NULL, 
	id INTEGER NOT NULL, 
	kind VARCHAR(16) NOT NULL, 
	boot INTEGER NOT NULL, 
	ticks INTEGER NOT NULL, 
	round INTEGER, 
	utc VARCHAR(32) NOT NULL, 
	body TEXT NOT NULL, 
	link VARCHAR(32) NOT NULL, 
	PRIMARY KEY (uid, id)
);
INSERT INTO "events" VALUES('U1',1,'boot',1,0,NULL,'2026-05-17T20:00:01.000+00:00','{"id":1,"k":"boot","b":1,"t":0,"d":{"firmware":"0.0","build":"test","board":"none","uid":"U1","cause":"power"}}','4da8616339e569d91ac0084d5d89630d');
INSERT INTO "events" VALUES('U1',2,'opened',1,0,1,'2026-05-17T20:00:02.000+00:00','{"id":2,"k":"opened","b":1,"t":0,"d":{"round":1,"shaker":1}}','35a2c02f4a559eacb614edc584563608');
INSERT INTO "events" VALUES('U1',3,'closed',1,0,1,'2026-05-17T20:00:04.000+00:00','{"id":3,"k":"closed","b":1,"t":0,"d":{"round":1,"shaker":1,"bets":[[2,{"match":500,"bonus":100}]],"liability":4000}}','7bf8e978ee3b249d4e34865c1641a676');
INSERT INTO "events" VALUES('U1',4,'locked',1,2400,1,'2026-05-17T20:00:05.000+00:00','{"id":4,"k":"locked","b":1,"t":2400,"d":{"round":1,"dice":[1,2,3],"eye":1,"shaker":1,"shakes":1,"bets":[[2,{"match":500,"bonus":100}]],"bets_open":false,"manual":null}}','2e6c03ff2e4984db641aa6c9c174b8b9');
INSERT INTO "events" VALUES('U1',5,'door',1,2400,NULL,'2026-05-17T20:00:06.000+00:00','{"id":5,"k":"door","b":1,"t":2400,"d":{"which":"lid","open":true}}','a2cb8f44d80e5271aa08834f21f504fa');
INSERT INTO "events" VALUES('U1',6,'settled',1,2400,1,'2026-05-17T20:00:07.000+00:00','{"id":6,"k":"settled","b":1,"t":2400,"d":{"round":1,"dice":[1,2,3],"eye":1,"total":6,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"match",500,1],[2,"bonus",100,0]],"net":400,"before":0,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}}','e799aa957cdbb5513f57f7453e5b7d6a');
INSERT INTO "events" VALUES('U1',7,'door',1,2400,NULL,'2026-05-17T20:00:08.000+00:00','{"id":7,"k":"door","b":1,"t":2400,"d":{"which":"lid","open":false}}','d08176f075751cd2e08b1c37807605c9');
INSERT INTO "events" VALUES('U1',8,'opened',1,2400,2,'2026-05-17T20:00:09.000+00:00','{"id":8,"k":"opened","b":1,"t":2400,"d":{"round":2,"shaker":1}}','1fd5d91b2188c97fab952e80efc8d21c');
INSERT INTO "events" VALUES('U1',9,'closed',1,2400,2,'2026-05-17T20:00:11.000+00:00','{"id":9,"k":"closed","b":1,"t":2400,"d":{"round":2,"shaker":1,"bets":[[2,{"match":500,"bonus":100}]],"liability":4000}}','213ba977c61293bdc5660a42d49f6345');
INSERT INTO "events" VALUES('U1',10,'locked',1,9400,2,'2026-05-17T20:00:12.000+00:00','{"id":10,"k":"locked","b":1,"t":9400,"d":{"round":2,"dice":[4,4,4],"eye":1,"shaker":1,"shakes":1,"bets":[[2,{"match":500,"bonus":100}]],"bets_open":false,"manual":null}}','d9459b3c6278b8d0b7fabfa520ff9a91');
INSERT INTO "events" VALUES('U1',11,'door',1,9400,NULL,'2026-05-17T20:00:13.000+00:00','{"id":11,"k":"door","b":1,"t":9400,"d":{"which":"lid","open":true}}','5ddaa445e9e0a62328b726bff12f3cc8');
INSERT INTO "events" VALUES('U1',12,'settled',1,9400,2,'2026-05-17T20:00:14.000+00:00','{"id":12,"k":"settled","b":1,"t":9400,"d":{"round":2,"dice":[4,4,4],"eye":1,"total":12,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"match",500,0],[2,"bonus",100,25]],"net":2000,"before":0,"level":1,"streak":{"count":1,"parts":[[2,100]],"gone":[]}}}','3943cfb87be7c07f33877fd7ce4560f8');
INSERT INTO "events" VALUES('U1',13,'door',1,9400,NULL,'2026-05-17T20:00:15.000+00:00','{"id":13,"k":"door","b":1,"t":9400,"d":{"which":"lid","open":false}}','b930f928abc36b0168f06f31524a66fb');
INSERT INTO "events" VALUES('U1',14,'opened',1,9400,3,'2026-05-17T20:00:16.000+00:00','{"id":14,"k":"opened","b":1,"t":9400,"d":{"round":3,"shaker":1}}','aeb962f33e9f151383c7cdd212bbd00b');
INSERT INTO "events" VALUES('U1',15,'closed',1,9400,3,'2026-05-17T20:00:18.000+00:00','{"id":15,"k":"closed","b":1,"t":9400,"d":{"round":3,"shaker":1,"bets":[[2,{"bonus":100}],[3,{"odd":100}]],"liability":5000}}','1c999a6b6ea324f0ce0d9567398cfd72');
INSERT INTO "events" VALUES('U1',16,'locked',1,16400,3,'2026-05-17T20:00:19.000+00:00','{"id":16,"k":"locked","b":1,"t":16400,"d":{"round":3,"dice":[6,5,6],"eye":1,"shaker":1,"shakes":1,"bets":[[2,{"bonus":100}],[3,{"odd":100}]],"bets_open":false,"manual":null}}','9119daf25abe8428dc71e6df01bbfb11');
INSERT INTO "events" VALUES('U1',17,'door',1,16400,NULL,'2026-05-17T20:00:20.000+00:00','{"id":17,"k":"door","b":1,"t":16400,"d":{"which":"lid","open":true}}','d471758b498aa1d23dd12e6e6a1529bf');
INSERT INTO "events" VALUES('U1',18,'settled',1,16400,3,'2026-05-17T20:00:21.000+00:00','{"id":18,"k":"settled","b":1,"t":16400,"d":{"round":3,"dice":[6,5,6],"eye":1,"total":17,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"bonus",100,0],[3,"odd",100,1]],"net":0,"before":1,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}}','eea7506f0e5d19ef8b46d29588789d8d');
INSERT INTO "events" VALUES('U1',19,'door',1,16400,NULL,'2026-05-17T20:00:22.000+00:00','{"id":19,"k":"door","b":1,"t":16400,"d":{"which":"lid","open":false}}','53b52335f4364c619603c90b1b70c31e');
INSERT INTO "events" VALUES('U1',20,'streak',1,16400,NULL,'2026-05-17T20:00:23.000+00:00','{"id":20,"k":"streak","b":1,"t":16400,"d":{"why":"dice changed, streak kept","position":0,"streak":{"count":0,"parts":[],"gone":[]}}}','9447936593115008d66a28a774e1c3f7');
INSERT INTO "events" VALUES('U1',21,'opened',1,16400,4,'2026-05-17T20:00:24.000+00:00','{"id":21,"k":"opened","b":1,"t":16400,"d":{"round":4,"shaker":1}}','60bd3519490271207c22aa8b359ab07f');
INSERT INTO "events" VALUES('U1',22,'closed',1,16400,4,'2026-05-17T20:00:26.000+00:00','{"id":22,"k":"closed","b":1,"t":16400,"d":{"round":4,"shaker":1,"bets":[[2,{"double":100}]],"liability":400}}','81fd8cb1dd3d6136afc5a9c4ab72574d');
INSERT INTO "events" VALUES('U1',23,'locked',1,23400,4,'2026-05-17T20:00:27.000+00:00','{"id":23,"k":"locked","b":1,"t":23400,"d":{"round":4,"dice":[2,2,1],"eye":1,"shaker":1,"shakes":1,"bets":[[2,{"double":100}]],"bets_open":false,"manual":null}}','051f09c8fc6e07c44493ecf4aee68ae2');
INSERT INTO "events" VALUES('U1',24,'door',1,23400,NULL,'2026-05-17T20:00:28.000+00:00','{"id":24,"k":"door","b":1,"t":23400,"d":{"which":"lid","open":true}}','22b1d54f6dbab8e1eb9e92ceb50432d5');
INSERT INTO "events" VALUES('U1',25,'settled',1,23400,4,'2026-05-17T20:00:29.000+00:00','{"id":25,"k":"settled","b":1,"t":23400,"d":{"round":4,"dice":[2,2,1],"eye":1,"total":5,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"double",100,0]],"net":-100,"before":0,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}}','4f28d64ca840f712daaec7a6f6b51749');
INSERT INTO "events" VALUES('U1',26,'door',1,23400,NULL,'2026-05-17T20:00:30.000+00:00','{"id":26,"k":"door","b":1,"t":23400,"d":{"which":"lid","open":false}}','77528f40ef167514b3180875276caa4e');
INSERT INTO "events" VALUES('U1',27,'opened',1,23400,5,'2026-05-17T20:00:31.000+00:00','{"id":27,"k":"opened","b":1,"t":23400,"d":{"round":5,"shaker":2}}','58200c2eef90cf9cf179ddab2fd2f0d5');
INSERT INTO "events" VALUES('U1',28,'closed',1,23400,5,'2026-05-17T20:00:33.000+00:00','{"id":28,"k":"closed","b":1,"t":23400,"d":{"round":5,"shaker":2,"bets":[[2,{"match":500}]],"liability":1500}}','4edd9349a4d682a550d4c15386f2bd3b');
INSERT INTO "events" VALUES('U1',29,'streak',1,23400,NULL,'2026-05-17T20:00:34.000+00:00','{"id":29,"k":"streak","b":1,"t":23400,"d":{"why":"dice changed, streak kept","position":0,"streak":{"count":0,"parts":[],"gone":[]}}}','b031bc499d102539f33433cab8b6e858');
INSERT INTO "events" VALUES('U1',30,'locked',1,30400,5,'2026-05-17T20:00:35.000+00:00','{"id":30,"k":"locked","b":1,"t":30400,"d":{"round":5,"dice":[3,3,3],"eye":1,"shaker":2,"shakes":1,"bets":[[2,{"match":500}]],"bets_open":false,"manual":null}}','585b6b55615da15aed219b550eb50529');
INSERT INTO "events" VALUES('U1',31,'door',1,30400,NULL,'2026-05-17T20:00:36.000+00:00','{"id":31,"k":"door","b":1,"t":30400,"d":{"which":"lid","open":true}}','ecd3177cee2186c7d5549ae68caa40a4');
INSERT INTO "events" VALUES('U1',32,'settled',1,30400,5,'2026-05-17T20:00:37.000+00:00','{"id":32,"k":"settled","b":1,"t":30400,"d":{"round":5,"dice":[3,3,3],"eye":1,"total":9,"shaker":2,"shakes":1,"manual":null,"rows":[[2,"match",500,0]],"net":-500,"before":0,"level":1,"streak":{"count":1,"parts":[],"gone":[]}}}','ffda536a330852d5c539edac5c2f60df');
INSERT INTO "events" VALUES('U1',33,'door',1,30400,NULL,'2026-05-17T20:00:38.000+00:00','{"id":33,"k":"door","b":1,"t":30400,"d":{"which":"lid","open":false}}','f7edfee7202d3d1a9b27399b59720def');
INSERT INTO "events" VALUES('U1',34,'opened',1,30400,6,'2026-05-17T20:00:39.000+00:00','{"id":34,"k":"opened","b":1,"t":30400,"d":{"round":6,"shaker":0}}','48314eb9597957dd794381f679b94566');
INSERT INTO "events" VALUES('U1',35,'void',1,30400,6,'2026-05-17T20:00:41.000+00:00','{"id":35,"k":"void","b":1,"t":30400,"d":{"round":6,"reason":"supervisor","shakes":0,"over":true,"note":"dice on the floor"}}','4b53678e9de6092f3b18a47cbe6ca4a6');
INSERT INTO "events" VALUES('U1',36,'opened',1,30400,7,'2026-05-17T20:00:42.000+00:00','{"id":36,"k":"opened","b":1,"t":30400,"d":{"round":7,"shaker":4}}','da65362727e065205f8ffaba86ed03f0');
CREATE TABLE rounds (
	uid VARCHAR(32) NOT NULL, 
	number INTEGER NOT NULL, 
	event INTEGER NOT NULL, 
	utc VARCHAR(32) NOT NULL, 
	status VARCHAR(8) NOT NULL, 
	shaker INTEGER NOT NULL, 
	voids INTEGER NOT NULL, 
	dice VARCHAR(8), 
	eye INTEGER, 
	total INTEGER, 
	net INTEGER, 
	manual VARCHAR(80), 
	result TEXT, 
	tiles TEXT, 
	PRIMARY KEY (uid, number), 
	FOREIGN KEY(uid, event) REFERENCES events (uid, id)
);
INSERT INTO "rounds" VALUES('U1',1,2,'2026-05-17T20:00:03.000+00:00','settled',1,0,'1 2 3',1,6,400,NULL,'{"round":1,"dice":[1,2,3],"eye":1,"total":6,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"match",500,1],[2,"bonus",100,0]],"net":400,"before":0,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}','{"start": 6, "deal": [6, 7, 1, 2, 3, 4, 5], "action": [6, 7, 2, 3, 4, 5], "bank": {"high": ["6-6", "3-5"], "low": ["1-3", "1-6"], "rule": "tops-c"}, "players": [{"position": 5, "high": ["1-1", "3-3"], "low": ["4-4", "2-6"], "rule": "best-low", "stake": 5000, "result": "push", "net": 0, "commission": 0}, {"position": 6, "high": ["6-6", "2-2"], "low": ["5-6", "2-3"], "rule": "best-low", "stake": 10000, "result": "push", "net": 0, "commission": 0}, {"position": 1, "high": ["5-5", "1-6"], "low": ["5-6", "1-4"], "rule": "best-low", "stake": 2500, "result": "push", "net": 0, "commission": 0}, {"position": 3, "high": ["3-3", "3-6"], "low": ["2-2", "4-6"], "rule": "best-low", "stake": 1000, "result": "push", "net": 0, "commission": 0}]}');
INSERT INTO "rounds" VALUES('U1',2,8,'2026-05-17T20:00:10.000+00:00','settled',1,0,'4 4 4',1,12,2000,NULL,'{"round":2,"dice":[4,4,4],"eye":1,"total":12,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"match",500,0],[2,"bonus",100,25]],"net":2000,"before":0,"level":1,"streak":{"count":1,"parts":[[2,100]],"gone":[]}}',NULL);
INSERT INTO "rounds" VALUES('U1',3,14,'2026-05-17T20:00:17.000+00:00','settled',1,0,'6 5 6',1,17,0,NULL,'{"round":3,"dice":[6,5,6],"eye":1,"total":17,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"bonus",100,0],[3,"odd",100,1]],"net":0,"before":1,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}',NULL);
INSERT INTO "rounds" VALUES('U1',4,21,'2026-05-17T20:00:25.000+00:00','settled',1,0,'2 2 1',1,5,-100,NULL,'{"round":4,"dice":[2,2,1],"eye":1,"total":5,"shaker":1,"shakes":1,"manual":null,"rows":[[2,"double",100,0]],"net":-100,"before":0,"level":0,"streak":{"count":0,"parts":[],"gone":[]}}',NULL);
INSERT INTO "rounds" VALUES('U1',5,27,'2026-05-17T20:00:32.000+00:00','settled',2,0,'3 3 3',1,9,-500,NULL,'{"round":5,"dice":[3,3,3],"eye":1,"total":9,"shaker":2,"shakes":1,"manual":null,"rows":[[2,"match",500,0]],"net":-500,"before":0,"level":1,"streak":{"count":1,"parts":[],"gone":[]}}',NULL);
INSERT INTO "rounds" VALUES('U1',6,34,'2026-05-17T20:00:40.000+00:00','void',0,1,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
INSERT INTO "rounds" VALUES('U1',7,36,'2026-05-17T20:00:43.000+00:00','open',4,0,NULL,NULL,NULL,NULL,NULL,NULL,NULL);
CREATE INDEX ix_events_round ON events (round);
CREATE INDEX ix_events_kind ON events (kind);
COMMIT;
